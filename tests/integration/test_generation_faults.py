"""Backends that fail, behind a whole server: a typed error or another allowed backend, never a part taken for a whole.

After each fault nothing is cached, and no connection, task or place is left.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc.aio
import pytest

from retrieval.caching.operating import figures_of
from retrieval.client.messages import error_info
from tests.fakes.gateways import Gateway, gateway, openai_backend
from tests.fakes.openai_server import Cut, OpenAIServer, Reset, Script, Send, Status, Wait, answer, serving, sse, token

WHOLE = answer("Tighten it ", "to 40 Nm [1].")
HALF = [Send(sse(token("Tighten it ")))]
BEFORE: dict[str, Script] = {
    "reset": [Reset()],
    "status 500": [Status(500)],
    "status 429": [Status(429)],
    "status 404": [Status(404)],
    "error in a 200": [Send(sse({"error": {"message": "SECRET1"}}))],
    "garbage": [Send(b"data: {not json\n\n")],
    "no utf-8": [Send(b"data: \xff\xfe\n\n")],
    "no end": [Send(b""), Cut()],
    "line of 10 MB": [Send(b"data: " + b"x" * 10_000_000, 65_536)],
}
AFTER: dict[str, Script] = {
    "reset": [*HALF, Reset()],
    "cut": [*HALF, Cut()],
    "end without an end": HALF,
    "error in a 200": [*HALF, Send(sse({"error": {"message": "SECRET1"}}))],
    "garbage": [*HALF, Send(b"data: {not json\n\n")],
    "aborted": [*HALF, Send(sse({"choices": [{"delta": {}, "finish_reason": "abort"}]}, "[DONE]"))],
}


async def refused(rig: Gateway) -> tuple[grpc.StatusCode, str, grpc.aio.AioRpcError]:
    """Returns how a question that cannot be answered ends."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await rig.ask()
    info = error_info(caught.value)
    assert info is not None
    assert "SECRET1" not in str(caught.value)
    return caught.value.code(), info.reason, caught.value


async def nothing_is_left(rig: Gateway, *servers: OpenAIServer) -> None:
    """Asserts that nothing was cached, that no server is asked any more, and that no place is held."""
    while any(exchange for server in servers for exchange in server.exchanges if not exchange.ended.is_set()):
        await asyncio.sleep(0)
    for stats in rig.app.engines.dispatcher.stats():
        assert (stats.running, stats.waiting) == (0, 0)
    assert {one.cache: one.entries for one in figures_of(rig.app.engines.caches)}["answers"] == 0


@pytest.mark.parametrize("fault", BEFORE)
async def test_fault_before_the_first_token_is_an_error_and_leaves_nothing(tmp_path: Path, fault: str) -> None:
    """UNAVAILABLE with a reason that programs can read; nothing of the server's words; nothing cached."""
    async with serving(BEFORE[fault]) as server, gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig:
        code, reason, _ = await refused(rig)
        assert code is grpc.StatusCode.UNAVAILABLE
        assert reason == "BACKEND_UNAVAILABLE"
        await nothing_is_left(rig, server)


@pytest.mark.parametrize("fault", AFTER)
async def test_fault_after_the_first_token_says_that_the_part_is_none(tmp_path: Path, fault: str) -> None:
    """BACKEND_CUT with the characters that came; never retried, never completed, never cached."""
    async with serving(AFTER[fault]) as server, gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig:
        code, reason, error = await refused(rig)
        assert (code, reason) == (grpc.StatusCode.UNAVAILABLE, "BACKEND_CUT")
        info = error_info(error)
        assert info is not None
        assert info.metadata["received_chars"] == str(len("Tighten it "))
        assert len(server.exchanges) == 1
        await nothing_is_left(rig, server)


@pytest.mark.parametrize("fault", BEFORE)
async def test_fault_of_the_first_backend_is_answered_by_the_next(tmp_path: Path, fault: str) -> None:
    """With `auto` another allowed backend answers; the ledger says so, and the answer of a stand-in is not kept."""
    async with serving(BEFORE[fault]) as bad, serving(WHOLE) as good:
        backends = [
            openai_backend("bad", bad.base_url, capability=1.0),
            openai_backend("good", good.base_url, capability=1.0, output_price=1.0, input_price=1.0),
        ]
        async with gateway(tmp_path, backends, **{"generation.default_backend": "auto"}) as rig:
            answered = await rig.ask()
            assert answered.text == "Tighten it to 40 Nm [1]."
            assert answered.completed is not None
            assert answered.completed.backend == "good"
            assert list(answered.completed.ledger.degraded) == ["backend_fallback"]
            assert not answered.completed.reuse.stored
            outcomes = [each.backend for each in answered.completed.ledger.generation.attempts]
            assert outcomes == ["bad", "good"]
            await nothing_is_left(rig, bad, good)


async def test_backend_that_hangs_is_given_up(tmp_path: Path) -> None:
    """No first token in the backend's time: BACKEND_TIMEOUT, and the request is withdrawn from it."""
    async with serving([Wait(asyncio.Event())]) as server:
        slow = openai_backend("llm", server.base_url, first_token_timeout_s=0.05)
        async with gateway(tmp_path, [slow]) as rig:
            code, reason, _ = await refused(rig)
            assert (code, reason) == (grpc.StatusCode.UNAVAILABLE, "BACKEND_TIMEOUT")
            await nothing_is_left(rig, server)


async def test_backend_that_stalls_is_cut(tmp_path: Path) -> None:
    """No further token in the backend's time: BACKEND_CUT."""
    async with serving([*HALF, Wait(asyncio.Event())]) as server:
        slow = openai_backend("llm", server.base_url, token_timeout_s=0.05)
        async with gateway(tmp_path, [slow]) as rig:
            code, reason, _ = await refused(rig)
            assert (code, reason) == (grpc.StatusCode.UNAVAILABLE, "BACKEND_CUT")
            await nothing_is_left(rig, server)


async def test_backend_that_is_not_there(tmp_path: Path) -> None:
    """Connection refused: BACKEND_UNAVAILABLE."""
    async with serving(WHOLE) as server:
        address = server.base_url
    async with gateway(tmp_path, [openai_backend("llm", address)]) as rig:
        code, reason, _ = await refused(rig)
        assert (code, reason) == (grpc.StatusCode.UNAVAILABLE, "BACKEND_UNAVAILABLE")
        await nothing_is_left(rig)


async def test_caller_who_leaves_ends_the_work_upstream(tmp_path: Path) -> None:
    """The upstream connection is closed when the caller cancels, and the next one is served at once (GEN-11)."""
    async with (
        serving([*HALF, Wait(asyncio.Event())], WHOLE) as server,
        gateway(tmp_path, [openai_backend("llm", server.base_url, max_concurrent=1)]) as rig,
    ):
        asking = asyncio.create_task(rig.ask())
        exchange = await server.exchange(0)
        asking.cancel()
        await exchange.client_left.wait()
        answered = await rig.ask()
        assert answered.completed is not None


async def test_whole_answer_is_kept_and_its_thoughts_are_not(tmp_path: Path) -> None:
    """Reasoning is streamed apart from the text, and is no part of a cached answer."""
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm. "}}]}
    async with (
        serving([Send(sse(thought)), *WHOLE]) as server,
        gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig,
    ):
        first, again = await rig.ask(), await rig.ask()
        assert (first.text, first.reasoning) == ("Tighten it to 40 Nm [1].", "Hm. ")
        assert (again.text, again.reasoning) == (first.text, "")
        assert again.completed is not None
        assert again.completed.reuse.similarity == 1.0
        assert len(server.exchanges) == 1
