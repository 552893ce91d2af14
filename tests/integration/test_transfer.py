"""Collections carried from one kind of index to another: nothing is lost, nothing is embedded anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import numpy as np
import pytest

from indexers.catalog import EmbeddedCatalog
from indexers.errors import IndexCorrupt, IndexUnavailable
from indexers.index import Index
from indexers.models import OneModel
from indexers.options import IndexOptions, ShardKind
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.index import QdrantIndex
from indexers.qdrant.options import QdrantOptions
from indexers.record_export import RecordExport
from indexers.transfer import Export, transfer
from indexers.types import CollectionKey, EncodedDocument, FieldType, Note
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, hybrid, token_vectors
from tests.fakes.qdrant_servicer import FakeQdrant, serving

KEY = CollectionKey("acme", "docs")
FIELDS = {"lang": FieldType.KEYWORD, "year": FieldType.INTEGER}


@asynccontextmanager
async def _qdrant(fake: FakeQdrant) -> AsyncIterator[QdrantCatalog]:
    async with serving(fake) as port:
        catalog = QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), OneModel(MODEL))
        yield catalog
        await catalog.close()


@asynccontextmanager
async def _edge(root: Path) -> AsyncIterator[EmbeddedCatalog]:
    catalog = EmbeddedCatalog(root, OneModel(MODEL), IndexOptions(kind=ShardKind.EXACT, build_automatically=False))
    yield catalog
    await catalog.close()


def _export(record: RecordExport) -> Export:
    async def export(after: str, limit: int) -> list[EncodedDocument]:
        return await asyncio.to_thread(record.export, after, limit)

    return export


def _documents(count: int = 70) -> list[EncodedDocument]:
    made = [encoded(f"d{n}", ["some words", f"w{n} é"], {"lang": "en", "year": 2000 + n}) for n in range(count)]
    first = made[0].document
    noted = replace(first, owner="handbook", notes=(Note(0, 4, "said of it"),), source_uri="file:///d0")
    chunks = (replace(made[0].chunks[0], chunk=replace(made[0].chunks[0].chunk, notes="said of it")), made[0].chunks[1])
    return [replace(made[0], document=noted, chunks=chunks), *made[1:]]


def _plain(document: EncodedDocument) -> object:
    chunks = [
        (one.chunk, one.dense.tolist(), one.terms.terms.tolist(), one.terms.counts.tolist(), one.terms.length)
        for one in document.chunks
    ]
    codes = [None if one.codes is None else one.codes.tolist() for one in document.chunks]
    return document.document, document.fingerprint, chunks, codes


async def _found(index: Index) -> dict[str, float]:
    found = await index.search(hybrid(index, "some w3 é", 200), None)
    return dict(zip(found.chunk_ids, np.round(found.dense_scores, 5).tolist(), strict=True))


async def test_collection_goes_to_a_server_and_back_unchanged(tmp_path: Path) -> None:
    """Documents, chunks, vectors, terms and token codes are the same after both ways, to the bit."""
    documents = _documents()
    async with _edge(tmp_path / "one") as edge, _edge(tmp_path / "two") as back, _qdrant(FakeQdrant()) as qdrant:
        source = await edge.create(KEY, FIELDS, "")
        await source.upsert(documents)
        server = await qdrant.create(KEY, FIELDS, "")
        with RecordExport(tmp_path / "one" / "acme" / "docs" / "record.sqlite") as record:
            report = await transfer(_export(record), source, server, prune=False)
        assert (report.documents, report.chunks, report.written) == (70, 140, 70)
        assert isinstance(server, QdrantIndex)
        target = await back.create(KEY, FIELDS, "")
        await transfer(server.export().export, server, target, prune=False)
        with RecordExport(tmp_path / "two" / "acme" / "docs" / "record.sqlite") as record:
            returned = record.export("", 100)
        expected = {one.document.document_id: _plain(one) for one in documents}
        assert {one.document.document_id: _plain(one) for one in returned} == expected
        await source.build()
        assert await _found(source) == await _found(server) == await _found(target)
        passages = await source.fetch(await source.chunk_ids("d3"))
        asked = token_vectors("some w3")
        scores = [await one.late_scores(asked, passages) for one in (source, server, target)]
        np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


async def test_transfer_that_broke_off_goes_on(tmp_path: Path) -> None:
    """What has arrived is not sent again, and a run with nothing to do writes nothing."""
    fake = FakeQdrant()
    async with _edge(tmp_path) as edge, _qdrant(fake) as qdrant:
        source, server = await edge.create(KEY, FIELDS, ""), await qdrant.create(KEY, FIELDS, "")
        await source.upsert(_documents())
        with RecordExport(tmp_path / "acme" / "docs" / "record.sqlite") as record:
            export = _export(record)

            async def failing(after: str, limit: int) -> list[EncodedDocument]:
                if after:
                    fake.fail_next["Upsert"] = grpc.StatusCode.UNAVAILABLE
                return await export(after, limit)

            with pytest.raises(IndexUnavailable):
                await transfer(failing, source, server, prune=False)
            assert (await server.count(None)).documents == 32
            assert (await transfer(export, source, server, prune=False)).written == 38
            assert (await transfer(export, source, server, prune=False)).written == 0


async def test_transfer_tells_what_only_the_target_holds(tmp_path: Path) -> None:
    """Documents that the source does not hold are an error, or go away when that is asked for."""
    async with _edge(tmp_path) as edge, _qdrant(FakeQdrant()) as qdrant:
        source, server = await edge.create(KEY, FIELDS, ""), await qdrant.create(KEY, FIELDS, "")
        await source.upsert(_documents(3))
        await server.upsert([encoded("own", ["words"])])
        with RecordExport(tmp_path / "acme" / "docs" / "record.sqlite") as record:
            with pytest.raises(IndexCorrupt, match="4 documents in 7 chunks, not 3 in 6"):
                await transfer(_export(record), source, server, prune=False)
            report = await transfer(_export(record), source, server, prune=True)
        assert (report.documents, report.removed) == (3, 1)


async def test_transfer_brings_what_is_written_meanwhile(tmp_path: Path) -> None:
    """A source that changes while it is read is read again, and both sides are equal at the end."""
    async with _edge(tmp_path) as edge, _qdrant(FakeQdrant()) as qdrant:
        source, server = await edge.create(KEY, FIELDS, ""), await qdrant.create(KEY, FIELDS, "")
        await source.upsert(_documents(40))
        changes = [encoded("d1", ["newer words"]), encoded("zz", ["newest words"])]
        with RecordExport(tmp_path / "acme" / "docs" / "record.sqlite") as record:
            export = _export(record)

            async def changing(after: str, limit: int) -> list[EncodedDocument]:
                read = await export(after, limit)
                if after and changes:
                    await source.upsert([changes.pop()])
                return read

            report = await transfer(changing, source, server, prune=False)
        assert report.documents == 41
        assert (await server.look_up(["d1"]))["d1"].fingerprint == encoded("d1", ["newer words"]).fingerprint
