"""A child process that serves a model: started, watched and ended for certain."""

from __future__ import annotations

import asyncio
import secrets
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

from retrieval.generation.llama_launch import Launch, Report

_LOAD_S = 600.0  # a large model from a slow disk
_END_S = 2.0
_TAIL_BYTES = 2000


class NotServing(Exception):
    """The child does not begin to serve; `fault` says why, `output` is the end of what it wrote to standard error."""

    def __init__(self, fault: str, output: str = "") -> None:
        super().__init__(fault)
        self.fault = fault
        self.output = output


class Child:
    """A child that serves on loopback, to those alone who know its key."""

    def __init__(self, process: Process, tail: asyncio.Task[bytes], port: int, api_key: str) -> None:
        self._process = process
        self._tail = tail
        self._port = port
        self.api_key = api_key

    @property
    def base_url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def wait(self) -> tuple[int, str]:
        """Waits until it ends by itself; returns its exit code and the end of what it wrote to standard error."""
        code = await self._process.wait()
        return code, (await asyncio.shield(self._tail)).decode(errors="replace")


@asynccontextmanager
async def serving_child(command: Sequence[str], launch: Launch) -> AsyncGenerator[Child, None]:
    """Runs the command while the block runs, and gives the child once it serves.

    However the block is left, the child has ended afterwards. It gets a session of its own, so that signals of a
    terminal do not reach it.

    Raises:
        NotServing: it ended, or said that it cannot, or took too long.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
    except OSError as error:
        raise NotServing(f"its process cannot be started ({error.strerror})") from error
    assert process.stderr is not None
    tail = asyncio.create_task(_tail_of(process.stderr))
    try:
        api_key = secrets.token_urlsafe(32)
        report = await _report(process, launch.line(api_key))
        if report.fault:
            await _end(process)
            raise NotServing(report.fault, (await tail).decode(errors="replace"))
        yield Child(process, tail, report.port, api_key)
    finally:
        await _end(process)
        await tail


async def _report(process: Process, line: bytes) -> Report:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_LOAD_S):
            process.stdin.write(line)
            await process.stdin.drain()
            return Report.read(await process.stdout.readline())
    except TimeoutError:
        return Report(fault=f"it did not load within {_LOAD_S:.0f} s")
    except ConnectionError:
        return Report.read(b"")


async def _end(process: Process) -> None:
    """Ends the child: it leaves when its input ends, and is killed when it does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_END_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _tail_of(stream: asyncio.StreamReader) -> bytes:
    """Reads to the end, so that the child never waits for a reader, and keeps the last of it."""
    tail = b""
    while chunk := await stream.read(1 << 16):
        tail = (tail + chunk)[-_TAIL_BYTES:]
    return tail
