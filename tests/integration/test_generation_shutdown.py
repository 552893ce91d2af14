"""SIGTERM with streams open: they finish within the grace, nothing new is taken, and the process goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc.aio
import pytest

from headrace.v1 import retrieval_pb2
from retrieval.client import Client, document, retrieve_request
from retrieval.client.messages import error_info
from tests.fakes.gateways import Answered, collected
from tests.fakes.openai_server import OpenAIServer, Send, Wait, answer, serving, sse, token
from tests.integration.conftest import PATIENCE_S, ServerProcess, running, settings_text

STREAMS = 50


def settings(folder: Path, backend: OpenAIServer, grace_s: float) -> str:
    """Returns settings of a server before the backend, without caches that would share the work."""
    lines = [
        settings_text(folder, keys=False, grace_s=grace_s),
        "[generation]",
        'default_backend = "llm"',
        "[[generation.backends]]",
        'name = "llm"',
        'kind = "openai"',
        f'base_url = "{backend.base_url}"',
        'model = "served"',
        f"max_concurrent = {STREAMS}",
        "[generation.queue]",
        f"initial_concurrent = {STREAMS}",
    ]
    return "\n".join(lines) + "\n"


def request(number: int) -> retrieval_pb2.GenerateRequest:
    """Returns a question of its own for each stream."""
    options = retrieval_pb2.RetrievalOptions(cache=False)
    return retrieval_pb2.GenerateRequest(retrieve=retrieve_request("docs", f"turbine {number}", options=options))


async def opened(server: ServerProcess, client: Client, backend: OpenAIServer) -> list[asyncio.Task[Answered]]:
    """Returns streams that have begun to answer."""
    await client.create_collection("docs")
    await client.upsert("docs", [document("t", "A turbine turns.")])
    streams = [asyncio.create_task(collected(client, request(number))) for number in range(STREAMS)]
    await backend.exchange(STREAMS - 1)
    return streams


async def test_sigterm_lets_open_streams_finish_and_takes_no_new_ones(tmp_path: Path) -> None:
    """Fifty answers end whole after the signal; a question after it is refused with SHUTTING_DOWN."""
    go_on = asyncio.Event()
    script = [Send(sse(token("Half "))), Wait(go_on), *answer("whole.")]
    async with serving(script) as backend:
        with running(tmp_path, settings(tmp_path, backend, PATIENCE_S)) as server:
            async with server.client() as client:
                streams = await opened(server, client, backend)
                server.process.terminate()
                await asyncio.to_thread(server.wait_for, "stopping")
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await collected(client, request(STREAMS))
                assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
                go_on.set()
                for answered in await asyncio.gather(*streams):
                    assert answered.text == "Half whole."
                    assert answered.completed is not None
            assert await asyncio.to_thread(server.process.wait, PATIENCE_S) == 0
    assert len(backend.exchanges) == STREAMS


async def test_sigterm_ends_streams_that_outlast_the_grace(tmp_path: Path) -> None:
    """Past the grace a stream ends with SHUTTING_DOWN, never as if it were whole, and the backend is let go."""
    async with serving([Send(sse(token("Half "))), Wait(asyncio.Event())]) as backend:
        with running(tmp_path, settings(tmp_path, backend, 0.0)) as server:
            async with server.client() as client:
                streams = await opened(server, client, backend)
                assert await asyncio.to_thread(server.stop) == 0
                for ended in await asyncio.gather(*streams, return_exceptions=True):
                    assert isinstance(ended, grpc.aio.AioRpcError)
                    assert ended.code() is grpc.StatusCode.UNAVAILABLE
                    info = error_info(ended)
                    assert info is not None
                    assert info.reason == "SHUTTING_DOWN"
        for exchange in backend.exchanges:
            await exchange.client_left.wait()
