"""The adapters' connection: what ends a call, on either side, and how that is told."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
import pytest

from headrace.v1 import retrieval_pb2
from retrieval.adapters import HeadraceError
from retrieval.adapters.connection import Connection
from retrieval.client import retrieve_request

PATIENCE_S = 30.0
ASKED = retrieve_request("docs", "How tight is valve 7?")


@dataclass
class Holding:
    """A server that answers no call; knows of each one that came, and when a caller had left."""

    address: str = ""
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    left: threading.Event = field(default_factory=threading.Event)

    def retrieve(
        self, request: retrieval_pb2.RetrieveRequest, context: grpc.ServicerContext
    ) -> retrieval_pb2.RetrieveResponse:
        """Waits until the caller leaves."""
        context.add_callback(self.left.set)
        self.came.release()
        self.left.wait()  # the stop of the server is a leaving too
        return retrieval_pb2.RetrieveResponse()

    async def called(self) -> bool:
        """Waits for the next call."""
        return await asyncio.to_thread(self.came.acquire, timeout=PATIENCE_S)


@pytest.fixture
def holding() -> Iterator[Holding]:
    """A server that keeps its callers waiting."""
    server, found = grpc.server(ThreadPoolExecutor(2)), Holding()
    handler = grpc.unary_unary_rpc_method_handler(
        found.retrieve,
        request_deserializer=retrieval_pb2.RetrieveRequest.FromString,
        response_serializer=retrieval_pb2.RetrieveResponse.SerializeToString,
    )
    service = grpc.method_handlers_generic_handler("headrace.v1.RetrievalService", {"Retrieve": handler})
    server.add_generic_rpc_handlers((service,))
    found.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield found
    server.stop(0).wait(PATIENCE_S)


async def test_connection_cancelled_coroutine_cancels_the_call(holding: Holding) -> None:
    """A caller who leaves stops the server's work for it."""
    connection = Connection(holding.address, None, None)
    asked = asyncio.create_task(connection.aretrieve(ASKED))
    assert await holding.called()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await asyncio.to_thread(holding.left.wait, PATIENCE_S)
    connection.close()


async def test_connection_close_ends_calls_that_run(holding: Holding) -> None:
    """Who waits when the connection is closed is told so, in a thread or in a coroutine."""
    connection = Connection(holding.address, None, None)
    asked = [asyncio.create_task(asyncio.to_thread(connection.retrieve, ASKED))]
    asked.append(asyncio.create_task(connection.aretrieve(ASKED)))
    assert await holding.called()
    assert await holding.called()
    connection.close()
    for ended in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(ended, HeadraceError)
        assert ended.code == "CANCELLED"


async def test_connection_loop_that_ends_leaves_nothing_behind(holding: Holding) -> None:
    """A loop may be gone before its call has ended."""
    connection = Connection(holding.address, None, None)

    async def leave() -> None:
        asked = asyncio.create_task(connection.aretrieve(ASKED))
        assert await holding.called()
        assert not asked.done()

    await asyncio.to_thread(asyncio.run, leave())
    assert await asyncio.to_thread(holding.left.wait, PATIENCE_S)
    connection.close()


def test_connection_timeout_bounds_a_call(holding: Holding) -> None:
    """A server that does not answer is given up on."""
    connection = Connection(holding.address, None, 0.05)
    with pytest.raises(HeadraceError) as failed:
        connection.retrieve(ASKED)
    assert failed.value.code == "DEADLINE_EXCEEDED"
    connection.close()


def test_connection_server_away_is_the_same_error() -> None:
    """Nobody listens: the code says so, and there is no reason of the server's."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    connection = Connection(address, None, None)
    with pytest.raises(HeadraceError) as failed:
        connection.retrieve(ASKED)
    assert (failed.value.code, failed.value.reason, failed.value.facts) == ("UNAVAILABLE", "", {})
    connection.close()
