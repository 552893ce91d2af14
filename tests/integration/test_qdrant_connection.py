"""Connections to a Qdrant server that are cut in the middle, or never come about, over gRPC and over REST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from indexers.errors import IndexUnavailable
from indexers.models import OneModel
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.qdrant.snapshots import Snapshots
from indexers.types import CollectionKey, Counts
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid
from tests.fakes.qdrant_servicer import FakeQdrant, serving
from tests.fakes.qdrant_snapshots import FakeSnapshots, serving_snapshots
from tests.fakes.tcp_proxy import TcpProxy, running_proxy

KEY = CollectionKey("acme", "docs")
DOCUMENTS = [encoded(f"d{n}", ["some words", f"w{n}"]) for n in range(5)]


class Holding(FakeQdrant):
    """A server that says when a call of a kind has come, and answers it when it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = ""
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    async def _enter(self, name: str, context: object) -> None:
        await super()._enter(name, context)
        if name == self.holds:
            self.holds = ""
            self.reached.set()
            await self.release.wait()


@pytest.fixture
def fake() -> Holding:
    """Is the state of the server."""
    return Holding()


@pytest.fixture
async def proxy(fake: Holding) -> AsyncIterator[TcpProxy]:
    """Is what stands between client and server."""
    async with serving(fake) as port, running_proxy(port) as running:
        yield running


@pytest.mark.parametrize("call", ["Upsert", "SetPayload", "Delete"])
@pytest.mark.parametrize("reset", [False, True])
async def test_write_whose_connection_is_cut_is_made_good(
    fake: Holding, proxy: TcpProxy, call: str, reset: bool
) -> None:
    """The writer is told, the server may have done it or not, and the same write again leaves one version (JOB-02)."""
    catalog = QdrantCatalog(
        QdrantOptions("127.0.0.1", proxy.port, timeout_s=1.0, lease_s=1.0, build_automatically=False), OneModel(MODEL)
    )
    index = await catalog.create(KEY, {}, "")
    await index.upsert([encoded("d1", ["old words", "older words", "oldest words"])])
    fake.holds = call
    writing = asyncio.create_task(index.upsert(DOCUMENTS))
    await fake.reached.wait()
    await proxy.drop(reset=reset)
    fake.release.set()
    with pytest.raises(IndexUnavailable):
        await writing
    for _ in range(3):  # the client takes a moment to connect anew
        try:
            await index.upsert(DOCUMENTS)
            break
        except IndexUnavailable:
            continue
    assert await index.count(None) == Counts(5, 10)
    assert await found_documents(index, hybrid(index, "old words", 50)) == {f"d{n}" for n in range(5)}
    await catalog.close()


async def test_snapshot_whose_connection_is_cut_is_no_backup(fake: Holding, tmp_path: Path) -> None:
    """A download that ends in the middle is an error, not a shorter file."""
    rest = FakeSnapshots(fake)
    async with serving(fake) as port, serving_snapshots(rest) as rest_port, running_proxy(rest_port) as between:
        catalog = QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), OneModel(MODEL))
        await (await catalog.create(KEY, {}, "")).upsert(DOCUMENTS)
        async with Snapshots(QdrantOptions("127.0.0.1", rest_url=f"http://127.0.0.1:{between.port}")) as snapshots:
            made = await snapshots.make("headrace.acme.docs.g0")
            size = len(rest.made["headrace.acme.docs.g0", made])
            listed = 2_000  # bytes of other replies at most
            assert size > 2 * listed
            between.faults.cut_after_bytes = listed
            with pytest.raises(IndexUnavailable):
                await snapshots.fetch("headrace.acme.docs.g0", made, tmp_path / "cut.snapshot")
        await catalog.close()


async def test_server_without_grpc_is_asked_over_rest() -> None:
    """Where gRPC is not wanted its port is not used, and a REST interface that is not there is the same error."""
    async with serving(FakeQdrant()) as port:
        options = QdrantOptions("127.0.0.1", port, rest_url="http://127.0.0.1:1", prefer_grpc=False, timeout_s=2.0)
        catalog = QdrantCatalog(options, OneModel(MODEL))
        with pytest.raises(IndexUnavailable):
            await catalog.open(KEY)
        await catalog.close()
