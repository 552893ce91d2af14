"""Calls of the OpenAI-compatible backend for tests: a prompt, a backend on a server, and what its stream gives."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import stat
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from retrieval.errors import BackendError, BackendUnavailable
from retrieval.generation.openai_backend import OpenAIBackend
from retrieval.settings.generation import BackendSettings
from retrieval.speech import BackendEnd, Delta, GenerationParams
from retrieval.types import Arrangement, Context, Prompt
from tests.fakes.counters import WordCounter
from tests.fakes.openai_server import OpenAIServer, Script, serving

CONTEXT = Context("[1]\nTurn the key.", 5, 100, "words")
PROMPT = Prompt("Answer.", CONTEXT, "How?", Arrangement.by_relevance(CONTEXT))
SECRET = "sk-secret-of-ours"
PATIENCE_S = 10.0


def params(seconds: float = 30.0, affinity: str = "") -> GenerationParams:
    """Allows that much time."""
    return GenerationParams(16, 0.5, time.monotonic_ns() + int(seconds * 1e9), affinity)


@asynccontextmanager
async def backend(base_url: str, **changes: Any) -> AsyncIterator[OpenAIBackend]:
    """Opens a backend on the server at an address, and closes it."""
    fields = {"name": "llm", "kind": "openai", "base_url": base_url, "model": "asked", "api_key": SECRET} | changes
    opened = OpenAIBackend(BackendSettings.model_validate(fields), WordCounter())
    try:
        yield opened
    finally:
        await opened.close()


async def collect(
    opened: OpenAIBackend, received: list[Delta], seconds: float = 30.0, prompt: Prompt = PROMPT
) -> BackendEnd | None:
    """Streams an answer into `received`; returns how it ended."""
    async with aclosing(opened.stream(prompt, params(seconds))) as pieces:
        async for piece in pieces:
            if isinstance(piece, BackendEnd):
                return piece
            received.append(piece)
    return None


async def ask(*scripts: Script, **changes: Any) -> tuple[str, BackendEnd]:
    """Plays the scripts to one call; returns text and end."""
    received: list[Delta] = []
    async with serving(*scripts) as server, backend(server.base_url, **changes) as opened:
        end = await collect(opened, received)
    assert end is not None
    return text_of(received), end


def text_of(received: list[Delta]) -> str:
    """Returns the text of pieces."""
    return "".join(piece.text for piece in received)


@contextmanager
def never_accepting() -> Iterator[str]:
    """Gives the address of a server whose system takes connections, and that takes none of them itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def encrypted(folder: Path) -> tuple[ssl.SSLContext, dict[str, str]]:
    """Returns what a server needs to speak TLS, and the backend's settings by which it is trusted."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    return context, {"tls_ca_file": str(folder / "ca.pem")}


async def failed(
    script: Script,
    received: list[Delta] | None = None,
    seconds: float = 30.0,
    tls: ssl.SSLContext | None = None,
    **changes: Any,
) -> BackendError:
    """Plays a script to one call; returns the error, once it is sure that one request was sent and nothing is left."""
    async with serving(script, tls=tls) as server:
        async with leaving_nothing(server), backend(server.base_url, **changes) as opened:
            with pytest.raises(BackendError) as caught:
                await collect(opened, [] if received is None else received, seconds)
        assert len(server.exchanges) <= 1
    for secret in (SECRET, "upstream words", server.base_url):
        assert secret not in str(caught.value)
    return caught.value


async def unavailable(script: Script, **changes: Any) -> BackendUnavailable:
    """Plays a script that fails before the first piece."""
    error = await failed(script, **changes)
    assert isinstance(error, BackendUnavailable)
    return error


@asynccontextmanager
async def leaving_nothing(server: OpenAIServer) -> AsyncIterator[None]:
    """Fails unless what the body has opened, tasks and sockets on both sides, is gone soon after it."""
    tasks, sockets = asyncio.all_tasks(), _sockets()
    yield
    async with asyncio.timeout(PATIENCE_S):
        while server.open_connections or asyncio.all_tasks() - tasks or _sockets() - sockets:
            await asyncio.sleep(0)


def _sockets() -> set[int]:
    """Returns the descriptors of this process's sockets."""
    found = set[int]()
    for name in Path("/dev/fd").iterdir():
        with suppress(OSError):  # the descriptor by which the folder was read
            if stat.S_ISSOCK(os.fstat(int(name.name)).st_mode):
                found.add(int(name.name))
    return found
