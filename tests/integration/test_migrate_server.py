"""A server moves a collection while it is asked and written from everywhere: no call fails, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from headrace.v1 import index_pb2, migrations_pb2
from retrieval.client import Client, document, error_info
from tests.fakes.tiny_models import make_tiny_bi_encoder
from tests.integration.conftest import running, settings_text

TEXTS = {
    "valve": "the valve is tightened to forty newton metres with a wrench",
    "pump": "the pump seal is replaced every two years in advance",
    "soup": "the soup is made of tomatoes and onions and a little salt",
}
MANY = TEXTS | {f"n{number}": f"number {number} of many" for number in range(300)}


class Traffic:
    """Questions, writes and a long import, until it is told to end."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ended = asyncio.Event()
        self.moved = asyncio.Event()
        self.asked = 0
        self.written = 0
        self.gone: set[str] = set()
        works = (*(self._ask(name) for name in TEXTS), self._write())
        self._tasks = [asyncio.create_task(one) for one in works]
        self._importing = asyncio.create_task(client.import_documents("docs", self._messages()))

    @property
    def expected(self) -> set[str]:
        """The ids of the documents that there must be afterwards."""
        written = {f"w{number}" for number in range(self.written)} | {f"i{number}" for number in range(200)}
        return {*MANY, *written} - self.gone

    async def end(self) -> None:
        """Goes on for a while after the collection has moved, and ends."""
        self.moved.set()
        assert (await self._importing).indexed == 200
        asked, written = self.asked, self.written
        while not any(one.done() for one in self._tasks) and (self.asked < asked + 9 or self.written < written + 4):
            await asyncio.sleep(0.01)
        self._ended.set()
        await asyncio.gather(*self._tasks)

    async def _ask(self, name: str) -> None:
        while not self._ended.is_set():
            found = await self._client.retrieve("docs", TEXTS[name], top_k=3)
            assert found.hits[0].document_id == name
            assert found.hits[0].scores.dense == pytest.approx(1.0, abs=2e-3)
            self.asked += 1

    async def _write(self) -> None:
        while not self._ended.is_set():
            name = f"w{self.written}"
            await self._client.upsert("docs", [document(name, f"written {name}")])
            self.written += 1
            if self.written % 3 == 0:
                await self._client.delete_documents("docs", ids=[name])
                self.gone.add(name)

    async def _messages(self) -> AsyncIterator[index_pb2.Document]:
        for number in range(100):
            yield document(f"i{number}", f"imported {number}")
        await self.moved.wait()
        for number in range(100, 200):
            yield document(f"i{number}", f"imported {number}")


@pytest.fixture
def settings(tmp_path: Path) -> str:
    """Are those of a server with a tiny model; there is another one beside it."""
    make_tiny_bi_encoder(tmp_path / "first", dim=16, seed=3)
    make_tiny_bi_encoder(tmp_path / "other", dim=24, seed=5)
    return settings_text(tmp_path, keys=False) + f'[encoders.dense]\nmodel = "{tmp_path / "first"}"\n'


async def test_everything_goes_on_through_the_swap(tmp_path: Path, settings: str) -> None:
    """Each question is answered by one model alone, and what was acknowledged is there afterwards."""
    with running(tmp_path, settings) as server:
        async with server.client() as client:
            await client.create_collection("docs")
            await client.import_documents("docs", [document(one, text) for one, text in MANY.items()])
            traffic = Traffic(client)
            wanted = migrations_pb2.MigrateCollectionRequest(collection="docs", model=str(tmp_path / "other"))
            steps = [one.migration.step async for one in client.migrations.migrate(wanted)]
            assert steps[-1] == migrations_pb2.MIGRATION_STEP_DONE
            await traffic.end()
            assert (await client.get_collection("docs")).dim == 24
            assert await _ids(client) == traffic.expected


async def test_collection_is_the_same_after_a_restart(tmp_path: Path, settings: str) -> None:
    """The server opens the other model by itself; going back needs no name."""
    with running(tmp_path, settings) as server:
        async with server.client() as client:
            await client.create_collection("docs")
            await client.import_documents("docs", [document(one, text) for one, text in TEXTS.items()])
            wanted = migrations_pb2.MigrateCollectionRequest(collection="docs", model=str(tmp_path / "other"))
            last = [one.migration async for one in client.migrations.migrate(wanted)][-1]
            assert (last.documents, last.encoded, last.check.recall) == (3, 3, 1.0)
        server.stop()
    with running(tmp_path, settings) as server:
        async with server.client() as client:
            assert (await client.get_collection("docs")).dim == 24
            found = await client.retrieve("docs", TEXTS["soup"], top_k=1)
            assert found.hits[0].document_id == "soup"
            back = migrations_pb2.MigrateCollectionRequest(collection="docs", back=True)
            assert [one.migration.encoded async for one in client.migrations.migrate(back)][-1] == 0
            assert (await client.get_collection("docs")).dim == 16
            await client.migrations.forget(migrations_pb2.ForgetMigrationRequest(collection="docs"))
            standing = await client.migrations.get(migrations_pb2.GetMigrationRequest(collection="docs"))
            assert (standing.previous, standing.building) == ("", "")


async def test_refusals_say_what_is_wrong(tmp_path: Path, settings: str) -> None:
    """A model that is not there, a collection that is not there, bounds that no number can have."""
    with running(tmp_path, settings) as server:
        async with server.client() as client:
            await client.create_collection("docs")
            await client.upsert("docs", [document(one, text) for one, text in TEXTS.items()])
            for request, reason in (
                ({"collection": "docs", "model": str(tmp_path / "none")}, "MODEL_UNUSABLE"),
                ({"collection": "none"}, "COLLECTION_NOT_FOUND"),
                ({"collection": "docs", "back": True}, "MIGRATION_REFUSED"),
                ({"collection": "docs", "back": True, "model": "x"}, "INVALID_REQUEST"),
                ({"collection": "docs", "min_recall": 2.0}, "INVALID_REQUEST"),
            ):
                call = client.migrations.migrate(migrations_pb2.MigrateCollectionRequest(**request))
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await _drained(call)
                info = error_info(caught.value)
                assert info is not None
                assert info.reason == reason
            assert (await client.get_collection("docs")).dim == 16


async def _drained(states: AsyncIterator[object]) -> None:
    async for _ in states:
        pass


async def _ids(client: Client) -> set[str]:
    there: set[str] = set()
    token = ""
    while not there or token:
        page = await client.list_documents("docs", 1000, token)
        there |= {one.id for one in page.documents}
        token = page.next_page_token
    return there
