"""A writer dies after each of its calls in turn; another one runs the same again, and nothing of the death is left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from indexers.errors import IndexUnavailable
from indexers.index import Index
from indexers.models import OneModel
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.types import CollectionKey, EncodedDocument
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid
from tests.fakes.qdrant_servicer import FakeQdrant, serving

KEY = CollectionKey("acme", "docs")
FIRST = [encoded("a", ["shared old", "shared twice"]), encoded("b", ["shared other"])]
SECOND = [encoded("a", ["shared new", "shared twice", "shared third"]), encoded("c", ["shared fresh"])]


async def _sync(index: Index, wanted: Sequence[EncodedDocument]) -> frozenset[str]:
    """Brings an index to a state as a job's run does: by fingerprints, conditionally, and what is gone is deleted."""
    since = (await index.current_epoch()).write_sequence
    stored = await index.look_up(["a", "b", "c"])
    ids = {one.document.document_id for one in wanted}
    changed = [one for one in wanted if _print(stored, one.document.document_id) != one.fingerprint]
    result = await index.upsert(changed, since)
    gone = sorted({"a", "b", "c"} - ids)
    await index.delete(gone, since)
    return result.superseded


def _print(stored: dict, document_id: str) -> str | None:
    return stored[document_id].fingerprint if document_id in stored else None


async def _texts(index: Index, fake: FakeQdrant) -> dict[str, list[str]]:
    """Returns the texts of all points that are there, whether a document leads to them or not."""
    points = fake.collections[fake.aliases["headrace.acme.docs"]].points.values()
    texts: dict[str, list[str]] = {}
    for point in sorted(points, key=lambda one: one.payload["ordinal"]):
        texts.setdefault(point.payload["document_id"], []).append(point.payload["text"])
    assert await found_documents(index, hybrid(index, "shared", 50)) == set(texts)
    return texts


def _expected(documents: Sequence[EncodedDocument]) -> dict[str, list[str]]:
    return {one.document.document_id: [each.chunk.text for each in one.chunks] for one in documents}


@pytest.mark.parametrize("calls", range(22))
async def test_death_after_any_call_leaves_nothing(calls: int) -> None:
    """One run of another process brings the index to what the source says by then (cases JOB-02 and JOB-03)."""
    then = SECOND if calls % 2 else FIRST  # the source has stayed, or went back to what it was
    fake = FakeQdrant()
    async with serving(fake) as port:
        whole = QdrantOptions("127.0.0.1", port, timeout_s=10.0, build_automatically=False)
        dying = QdrantOptions("127.0.0.1", port, timeout_s=0.1, lease_s=0.2, build_automatically=False)
        first, second = QdrantCatalog(dying, OneModel(MODEL)), QdrantCatalog(whole, OneModel(MODEL))
        index = await second.create(KEY, {}, "")
        await _sync(index, FIRST)
        try:
            mortal = await first.open(KEY)
            fake.dies_after = calls
            await _sync(mortal, SECOND)
        except IndexUnavailable:
            pass
        fake.dies_after = None
        assert await _sync(index, then) == frozenset()
        assert await _texts(index, fake) == _expected(then)
        assert {one: two.chunk_count for one, two in (await index.look_up(["a", "b", "c"])).items()} == {
            name: len(texts) for name, texts in _expected(then).items()
        }
        await index.build()
        assert await _texts(index, fake) == _expected(then)
        await first.close()
        await second.close()
