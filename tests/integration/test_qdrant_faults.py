"""What lies between us and a Qdrant server: deadlines, failures in the middle, and writes beside a build."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import grpc
import numpy as np
import pytest
from qdrant_client import grpc as qdrant
from structlog.testing import capture_logs

from indexers.errors import BuildFailed, CollectionNotFound, IndexUnavailable, ModelMismatch
from indexers.filters import Filter, MatchAny
from indexers.index import Index
from indexers.models import OneModel
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.types import CollectionKey, Counts, FieldType
from tests.contract.index_places import MODEL
from tests.fakes.encoded import CODEC, encoded, found_documents, hybrid, token_vectors
from tests.fakes.qdrant_servicer import FakeQdrant, serving

KEY = CollectionKey("tenant", "docs")


@pytest.fixture
def fake() -> FakeQdrant:
    """Is the state of the server."""
    return FakeQdrant()


@pytest.fixture
async def port(fake: FakeQdrant) -> AsyncIterator[int]:
    """Is where the server listens."""
    async with serving(fake) as opened:
        yield opened


@pytest.fixture
async def catalog(port: int) -> AsyncIterator[QdrantCatalog]:
    """Is an empty catalog that builds when it is told to."""
    opened = QdrantCatalog(QdrantOptions("127.0.0.1", port, timeout_s=30.0, build_automatically=False), OneModel(MODEL))
    yield opened
    await opened.close()


async def _filled(catalog: QdrantCatalog, count: int = 10) -> Index:
    index = await catalog.create(KEY, {"lang": FieldType.KEYWORD}, "")
    await index.upsert([encoded(f"d{n}", [f"alpha x{n}", f"beta y{n}"], {"lang": "en"}) for n in range(count)])
    return index


async def test_whole_call_has_one_deadline(fake: FakeQdrant, port: int) -> None:
    """A server that never ends its answer costs the whole deadline once, and the call is cancelled there (VEC-22)."""
    catalog = QdrantCatalog(QdrantOptions("127.0.0.1", port, timeout_s=0.3, build_automatically=False), OneModel(MODEL))
    index = await _filled(catalog, 1)
    fake.hang.add("QueryBatch")
    with pytest.raises(IndexUnavailable, match="no answer within"):
        await index.search(hybrid(index, "alpha"), None)
    fake.hang.clear()
    async with asyncio.timeout(10):
        while not fake.cancelled:
            await asyncio.sleep(0)
    assert fake.cancelled == ["QueryBatch"]
    assert await found_documents(index, hybrid(index, "alpha")) == {"d0"}
    await catalog.close()


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN])
async def test_failure_of_the_server_is_unavailable(fake: FakeQdrant, catalog: QdrantCatalog, code: object) -> None:
    """Whatever the server fails with, the error is ours, says where, and the next call works."""
    index = await _filled(catalog, 1)
    fake.fail_next["QueryBatch"] = code  # type: ignore[assignment]
    with pytest.raises(IndexUnavailable, match=r"127\.0\.0\.1") as caught:
        await index.search(hybrid(index, "alpha"), None)
    assert "as told" not in str(caught.value)
    assert await found_documents(index, hybrid(index, "alpha")) == {"d0"}


async def test_server_that_is_not_there_is_unavailable() -> None:
    """Nobody listening is the same error."""
    catalog = QdrantCatalog(QdrantOptions("127.0.0.1", 1, timeout_s=5.0), OneModel(MODEL))
    with pytest.raises(IndexUnavailable):
        await catalog.open(KEY)
    await catalog.close()


async def test_replacing_that_broke_off_is_made_good_by_writing_again(fake: FakeQdrant, catalog: QdrantCatalog) -> None:
    """After a failure half way one version is found, with neither fingerprint; a second try completes it (JOB-02)."""
    index = await _filled(catalog, 1)
    fake.fail_next["Delete"] = grpc.StatusCode.INTERNAL
    new = encoded("d0", ["alpha new", "gamma new", "delta new"])
    with pytest.raises(IndexUnavailable):
        await index.upsert([new])
    found = await index.search(hybrid(index, "alpha beta new", 20), None)
    assert {p.text for p in await index.fetch(found.chunk_ids)} == {"alpha new", "gamma new", "delta new"}
    assert (await index.look_up(["d0"]))["d0"].fingerprint == ""
    await index.upsert([new])
    assert await index.count(None) == Counts(1, 3)
    assert (await index.look_up(["d0"]))["d0"].fingerprint == new.fingerprint


async def test_delete_that_broke_off_is_made_good_by_deleting_again(fake: FakeQdrant, catalog: QdrantCatalog) -> None:
    """A delete that failed is not acknowledged; the second one removes everything (JOB-03)."""
    index = await _filled(catalog, 2)
    fake.fail_next["Delete"] = grpc.StatusCode.INTERNAL
    with pytest.raises(IndexUnavailable):
        await index.delete(["d0"])
    assert await index.delete(["d0"]) == 1
    assert await found_documents(index, hybrid(index, "alpha beta", 20)) == {"d1"}
    assert await index.count(None) == Counts(1, 2)


async def test_late_scores_are_one_call_for_the_candidates(fake: FakeQdrant, catalog: QdrantCatalog) -> None:
    """Token vectors have no graph; all late scores take one call, and none where there is nothing to ask."""
    index = await _filled(catalog, 5)
    params = fake.declared["tokens"]
    assert (params.size, params.distance, params.on_disk) == (CODEC.dim, qdrant.Distance.Dot, True)
    assert params.multivector_config.comparator == qdrant.MultiVectorComparator.MaxSim
    assert params.hnsw_config.HasField("m")
    assert params.hnsw_config.m == 0
    passages = await index.fetch((await index.search(hybrid(index, "alpha beta", 10), None)).chunk_ids)
    fake.calls.clear()
    assert np.isfinite(await index.late_scores(token_vectors("alpha"), passages)).all()
    assert fake.calls == ["QueryBatch"]
    await index.late_scores(token_vectors(""), passages)
    await index.late_scores(token_vectors("alpha"), [])
    assert fake.calls == ["QueryBatch"]
    assert fake.without_tenant == []
    fake.fail_next["QueryBatch"] = grpc.StatusCode.UNAVAILABLE
    with pytest.raises(IndexUnavailable):
        await index.late_scores(token_vectors("alpha"), passages)


async def test_long_passages_are_written_in_small_calls(fake: FakeQdrant, catalog: QdrantCatalog) -> None:
    """A call holds a bounded number of token vectors, so that no message is too large; every point arrives."""
    index = await catalog.create(KEY, {}, "")
    words = " ".join(f"w{n}" for n in range(300))
    before = fake.calls.count("Upsert")
    await index.upsert([encoded("long", [f"{words} x{n}" for n in range(10)])])
    assert fake.calls.count("Upsert") - before == 3 + 1  # chunks, then the document
    assert await index.count(None) == Counts(1, 10)


async def test_replacing_never_shows_two_versions(catalog: QdrantCatalog) -> None:
    """While a document is replaced, a search finds chunks of one version only, and never none (case JOB-02)."""
    index = await catalog.create(KEY, {}, "")
    await index.upsert([encoded("D", [f"omega version0 part{n}" for n in range(6)])])

    async def replacing() -> None:
        for number in range(1, 12):
            await index.upsert([encoded("D", [f"omega version{number} part{n}" for n in range(6 - number % 3)])])

    writing = asyncio.create_task(replacing())
    while not writing.done():
        candidates = await index.search(hybrid(index, "omega", 30), None)
        assert candidates.chunk_ids
        versions = {p.text.split()[1] for p in await index.fetch(candidates.chunk_ids)}
        assert len(versions) <= 1
    await writing


async def test_writes_during_a_build_are_in_the_new_generation(fake: FakeQdrant, catalog: QdrantCatalog) -> None:
    """What is written, replaced or deleted while chunks are copied is right in the new generation too."""
    index = await _filled(catalog, 30)
    build = asyncio.create_task(index.build())
    while fake.calls.count("Scroll") < 2:
        await asyncio.sleep(0)
    await index.upsert([encoded("new", ["fresh words"]), encoded("d1", ["fresh replaced"])])
    await index.delete(["d2"])
    assert (await build).generation == 1
    expected = {f"d{n}" for n in range(30)} - {"d2"} | {"new"}
    assert await found_documents(index, hybrid(index, "fresh alpha beta", 100)) == expected
    assert await index.count(None) == Counts(30, 28 * 2 + 2)
    assert fake.aliases["headrace.tenant.docs"] == "headrace.tenant.docs.g1"
    assert set(fake.collections) == {
        "headrace.collections",
        "headrace.tenant.docs.g1",
        "headrace.tenant.docs.documents.d0",
    }


async def test_build_that_fails_leaves_the_old_generation(fake: FakeQdrant, catalog: QdrantCatalog) -> None:
    """A server that fails while chunks are copied leaves everything as it was."""
    index = await _filled(catalog)
    fake.fail_next["Create"] = grpc.StatusCode.RESOURCE_EXHAUSTED
    with pytest.raises(BuildFailed):
        await index.build()
    assert index.epoch.generation == 0
    assert len(await found_documents(index, hybrid(index, "alpha", 50))) == 10
    assert (await index.build()).generation == 1


async def test_collection_that_doubles_is_weighed_anew(port: int) -> None:
    """Without being told, a growing collection gets statistics of its own."""
    catalog = QdrantCatalog(QdrantOptions("127.0.0.1", port, timeout_s=30.0), OneModel(MODEL))
    index = await _filled(catalog, 40)
    async with asyncio.timeout(60):
        while index.statistics.document_count == 0:
            await asyncio.sleep(0)
    assert index.statistics.document_count == 80
    assert index.epoch.generation == 1
    await catalog.close()


async def test_reader_notices_what_another_process_writes(port: int, catalog: QdrantCatalog) -> None:
    """A second client sees documents at once, and the epoch and statistics with its next search."""
    writer = await _filled(catalog, 3)
    other = QdrantCatalog(QdrantOptions("127.0.0.1", port, timeout_s=30.0, build_automatically=False), OneModel(MODEL))
    reader = await other.open(KEY)
    await writer.upsert([encoded("late", ["omega"])])
    await writer.build()
    assert reader.epoch != writer.epoch
    assert "late" in await found_documents(reader, hybrid(reader, "omega"))
    assert reader.epoch == writer.epoch
    assert reader.statistics.document_count == writer.statistics.document_count == 7
    await catalog.delete(KEY)
    with pytest.raises((CollectionNotFound, IndexUnavailable)):
        await reader.search(hybrid(reader, "omega"), None)
    await other.close()


async def test_another_models_collection_does_not_open(port: int, catalog: QdrantCatalog) -> None:
    """Vectors of another dimension or revision are refused before any write (case VEC-04)."""
    await _filled(catalog, 1)
    for model in (replace(MODEL, dim=768), replace(MODEL, revision="2")):
        other = QdrantCatalog(QdrantOptions("127.0.0.1", port), OneModel(model))
        with pytest.raises(ModelMismatch):
            await other.open(KEY)
        assert await other.list(KEY.tenant) == []
        await other.close()


async def test_every_filter_begins_with_the_tenant(fake: FakeQdrant, catalog: QdrantCatalog) -> None:
    """No call that selects points does so without the tenant (case TEN-03)."""
    index = await _filled(catalog, 3)
    asked = Filter(must=(MatchAny("lang", ("en",)),))
    await index.search(hybrid(index, "alpha"), asked)
    await index.search(hybrid(index, "alpha"), None)
    await index.count(asked)
    await index.list_documents(2, "")
    await index.build()
    await catalog.update(KEY, {"year": FieldType.INTEGER}, "new")
    await index.delete_where(asked)
    await catalog.list(KEY.tenant)
    await catalog.delete(KEY)
    assert fake.without_tenant == []
    assert {"Delete", "Count", "Scroll", "QueryBatch"} <= set(fake.calls)


async def test_build_that_failed_is_not_tried_at_every_write(
    fake: FakeQdrant, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one waits; once its time has come, a write starts it."""
    catalog = QdrantCatalog(QdrantOptions("127.0.0.1", port), OneModel(MODEL))
    index = await catalog.create(KEY, {}, "")

    async def build_of(write: int) -> list[str]:
        fake.calls.clear()
        await index.upsert([encoded(f"w{write}-{n}", [f"alpha x{n}"]) for n in range(80)])
        for _ in range(10):
            await index.current_epoch()
        return [one for one in fake.calls if one in {"Count", "Create"}]

    fake.fail_next["Create"] = grpc.StatusCode.UNAVAILABLE
    with capture_logs() as logs:
        tried = await build_of(0)
        while not logs:
            tried = await build_of(0)
    assert "Create" in tried
    assert logs[0]["event"] == "build_failed"
    assert logs[0]["pause_s"] == 60.0
    assert await build_of(1) == []
    monkeypatch.setattr("time.monotonic", lambda: 1e12)
    assert (await build_of(2))[:1] == ["Count"]
    monkeypatch.undo()
    await catalog.close()


async def test_build_that_takes_too_long_leaves_the_old_generation(fake: FakeQdrant, port: int) -> None:
    """A build has the time that the settings give it, whatever one call may take; the collection serves on."""
    options = QdrantOptions("127.0.0.1", port, timeout_s=30.0, build_timeout_s=0.3, build_automatically=False)
    catalog = QdrantCatalog(options, OneModel(MODEL))
    index = await _filled(catalog)
    fake.hang.add("Create")
    with pytest.raises(BuildFailed, match=r"took longer than 0\.3 s"):
        await index.build()
    fake.hang.clear()
    assert await index.count(None) == Counts(10, 20)
    await catalog.close()


async def test_documents_are_written_together(fake: FakeQdrant, catalog: QdrantCatalog) -> None:
    """One call for as many as fit; long texts are cut off from them."""
    index = await catalog.create(KEY, {}, "")
    made = []
    for number in range(63):
        one = encoded(f"d{number}", [f"alpha x{number}"])
        text = one.document.text + ("" if number // 3 != 10 else " and so on" * 30_000)
        made.append(replace(one, document=replace(one.document, text=text)))
    fake.writes.clear()
    await index.upsert(made)
    upserts = [request.points for name, request in fake.writes if name == "Upsert"]
    assert [len(points) for points in upserts if "text_length" in points[0].payload] == [31, 1, 31]
