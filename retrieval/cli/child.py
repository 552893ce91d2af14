"""A server as a child process, for the demo: started on a free port, waited for, stopped, its log kept."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from retrieval.cli.exits import NoServer, WorkFailed
from retrieval.cli.health import serving_status
from retrieval.server.endpoint_file import running_server

_START_S = 60.0
_STOP_S = 15.0
_POLL_S = 0.05
_TAIL_LINES = 20


@asynccontextmanager
async def child_server(config: Path, folder: Path, environ: Mapping[str, str]) -> AsyncIterator[str]:
    """Serves the data folder in a child process while the block runs, and gives the address.

    Raises:
        WorkFailed: the child does not begin to serve, or does not stop as it should; holds the end of its log.
    """
    log = folder / "server.log"
    with log.open("wb") as output:
        options = ["--config", str(config), "--data", str(folder), "--port", "0"]
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - a fork takes no longer than a millisecond; our own program
            [sys.executable, "-m", "retrieval.cli.main", "serve", *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environ),
        )
    try:
        yield await _serving(process, folder, log)
    finally:
        code = await asyncio.to_thread(_stop, process)
    if code:
        raise WorkFailed(f"the server ended with exit code {code}; the end of its log:\n{_tail(log)}")


async def _serving(process: subprocess.Popen[bytes], folder: Path, log: Path) -> str:
    """Waits until the child says that it serves, and returns its address."""
    give_up = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < give_up:
        address = running_server(folder, process.pid)
        if address is not None and await _serves(address):
            return address
        await asyncio.sleep(_POLL_S)
    raise WorkFailed(f"the server did not begin to serve; the end of its log:\n{_tail(log)}")


async def _serves(address: str) -> bool:
    try:
        return await serving_status(address) == "serving"
    except NoServer:
        return False


def _stop(process: subprocess.Popen[bytes]) -> int:
    process.terminate()
    try:
        return process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
