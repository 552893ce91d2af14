"""The embedded model's process, for real, with a stand-in for llama.cpp in it: started, watched, ended for certain."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import aclosing, suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from retrieval.errors import BackendCut, BackendTimeout, BackendUnavailable
from retrieval.generation.llama_backend import LlamaBackend
from retrieval.generation.llama_child import serving_child
from retrieval.generation.openai_backend import OpenAIBackend
from retrieval.settings.generation import BackendSettings
from retrieval.speech import BackendEnd, FinishReason, GenerationParams, Usage
from retrieval.types import Arrangement, Context, Prompt
from tests.fakes.counters import WordCounter
from tests.fakes.llama_program import COMMAND, ROOT, launch, llama

CONTEXT = Context("[1]\nTurn the key.", 5, 100, "words")
PROMPT = Prompt("Answer.", CONTEXT, "How?", Arrangement.by_relevance(CONTEXT))
PARENT = """
import asyncio, sys, threading
from pathlib import Path
from tests.fakes.llama_program import llama
from tests.integration.test_llama_process import ask
async def main():
    async with llama(Path(sys.argv[1])) as opened:
        print("answer", (await ask(opened))[0], flush=True)
        threading.Event().wait()
asyncio.run(main())
"""


async def ask(opened: LlamaBackend, received: list[str] | None = None, seconds: float = 30.0) -> tuple[str, BackendEnd]:
    """Streams one answer; returns text and end."""
    texts = [] if received is None else received
    params = GenerationParams(16, 0.0, time.monotonic_ns() + int(seconds * 1e9))
    async with aclosing(opened.stream(PROMPT, params)) as pieces:
        async for piece in pieces:
            if isinstance(piece, BackendEnd):
                return "".join(texts), piece
            texts.append(piece.text)
    raise AssertionError("the stream has no end")


async def pid_of(opened: LlamaBackend) -> int:
    """Asks which process answers."""
    return int((await ask(opened))[0].split()[0])


def gone(pid: int) -> bool:
    """Whether our own child with that id has ended and was reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_answer_comes_from_a_process_sized_as_launched(tmp_path: Path) -> None:
    """The first request starts the process, which is nicer than we are; usage and the model's label are its own."""
    async with llama(tmp_path) as opened:
        text, end = await ask(opened)
        pid, _, niceness, slots, tokens = (int(part) for part in text.split())
        assert (niceness - os.nice(0), slots, tokens) == (3, 2, 1024)
        assert end == BackendEnd(FinishReason.STOP, Usage(9, 1, 8), "tiny")
        assert await pid_of(opened) == pid
    assert gone(pid)


async def test_requests_at_once_share_one_process(tmp_path: Path) -> None:
    """Requests that come while it loads wait for the same one, and one that leaves ends nothing."""
    async with llama(tmp_path) as opened:
        opened.start()
        tasks = [asyncio.create_task(pid_of(opened)) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert len(set(await asyncio.gather(*tasks[1:]))) == 1


async def test_nobody_without_the_key_is_served(tmp_path: Path) -> None:
    """Another user of the machine finds the port and is refused; the key is in no command line."""
    async with serving_child(COMMAND, launch(tmp_path)) as child:
        settings = BackendSettings(name="small", kind="openai", base_url=child.base_url, model="tiny")
        other = OpenAIBackend(settings, WordCounter())
        try:
            with pytest.raises(BackendUnavailable) as caught:
                async with aclosing(other.stream(PROMPT, GenerationParams(1, 0.0, time.monotonic_ns() + 10**10))) as it:
                    await anext(it)
        finally:
            await other.close()
        assert caught.value.status == 401
        assert child.api_key.encode() not in Path(f"/proc/{child.pid}/cmdline").read_bytes()


async def test_death_in_an_answer_cuts_it_and_the_next_gets_a_new_process(tmp_path: Path) -> None:
    """What came is counted, the death is one line in the log with the code, and the next request starts another."""
    received: list[str] = []
    async with llama(tmp_path, "die_midway") as opened:
        with capture_logs() as lines:
            with pytest.raises(BackendCut):
                await ask(opened, received)
            launch(tmp_path, "answer")
            again = await until_served(opened)
        died = [line for line in lines if line["event"] == "llama_died"]
    assert [line["exit_code"] for line in died] == [5]
    assert "a library that warns" in died[0]["output"]
    assert again != int("".join(received).split()[0])


async def until_served(opened: LlamaBackend) -> int:
    """Asks until the death was noticed and another process answers."""
    async with asyncio.timeout(20.0):
        while True:
            try:
                return await pid_of(opened)
            except BackendUnavailable:
                await asyncio.sleep(0)


async def test_death_before_an_answer_is_unavailable_then_pauses(tmp_path: Path) -> None:
    """A process that dies again and again is not started at once each time: the refusal says when to come back."""
    async with llama(tmp_path, "die_before") as opened:
        pauses: list[float] = []
        async with asyncio.timeout(20.0):
            while not any(pauses):
                with pytest.raises(BackendUnavailable) as caught:
                    await ask(opened)
                assert caught.value.transient
                pauses.append(caught.value.retry_after_s)
    assert 0 < pauses[-1] <= 0.5


@pytest.mark.parametrize(("behaviour", "fault"), [("refuse", "it is no model"), ("exit", "ended before it served")])
async def test_model_that_does_not_load_is_unavailable(tmp_path: Path, behaviour: str, fault: str) -> None:
    """The reason is the program's own, or that it ended; what it wrote besides is in the log."""
    async with llama(tmp_path, behaviour) as opened:
        with capture_logs() as lines, pytest.raises(BackendUnavailable, match=fault):
            await ask(opened)
    assert [line["event"] for line in lines] == ["llama_failed"]
    assert "a library that warns" in lines[0]["output"]


async def test_program_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """No process, no traceback."""
    settings = BackendSettings(name="small", kind="llama", model="tiny")
    opened = LlamaBackend(settings, launch(tmp_path), WordCounter(), (str(tmp_path / "nothing"),))
    with pytest.raises(BackendUnavailable, match="cannot be started"):
        await ask(opened)
    await opened.close()


async def test_loading_takes_no_longer_than_a_first_token_may(tmp_path: Path) -> None:
    """A request waits for the model within its own time, and closing ends a process that still loads."""
    async with llama(tmp_path, "hang", first_token_timeout_s=0.2) as opened:
        with pytest.raises(BackendTimeout):
            await ask(opened)
    async with llama(tmp_path, "hang") as opened:
        with pytest.raises(BackendTimeout):
            await ask(opened, seconds=0.2)
        waiting = asyncio.create_task(ask(opened))
        await asyncio.sleep(0)
        await opened.close()
        with pytest.raises(BackendUnavailable) as caught:
            await waiting
        assert not caught.value.transient
        with pytest.raises(BackendUnavailable):
            opened.start()


async def test_signals_leave_it_to_the_parent(tmp_path: Path) -> None:
    """A service manager that signals every process does not break the streams that we still finish."""
    async with llama(tmp_path) as opened:
        pid = await pid_of(opened)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
        assert await pid_of(opened) == pid


async def test_process_that_does_not_leave_is_killed(tmp_path: Path) -> None:
    """Leaving the block ends a process that ignores the end of its input."""
    report = '{"port": 1, "fault": ""}'
    program = f"import signal; print('{report}', flush=True); signal.pause()"
    async with serving_child((sys.executable, "-c", program), launch(tmp_path)) as child:
        assert not gone(child.pid)
    assert gone(child.pid)


def test_killed_parent_takes_the_process_with_it(tmp_path: Path) -> None:
    """After `kill -9` of the service no process of it is left: its sockets close."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'proto'}"}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], env=environ, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        words = next(line for line in parent.stdout if line.startswith("answer")).split()
        with socket.create_connection(("127.0.0.1", int(words[2])), timeout=20.0) as watched:
            parent.kill()
            with suppress(ConnectionResetError):
                assert watched.recv(1) == b""
