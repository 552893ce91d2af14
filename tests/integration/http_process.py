"""A real server process with the HTTP listener on, and a collection in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAI

from retrieval.client import document
from tests.integration.conftest import PATIENCE_S, ServerProcess, free_port, running, settings_text

TEXTS = {
    "penstock": "The penstock of the plant is a steel pipe with walls of 24 millimetres.",
    "gate": "The intake gate closes in 12 seconds when the turbine trips.",
    "fish": "Eels pass the weir through a ladder on the left bank.",
}


@dataclass(frozen=True)
class HttpProcess:
    """The server, and where it listens for HTTP."""

    server: ServerProcess
    base_url: str

    def client(self, key: str = "alice") -> AsyncOpenAI:
        """Returns OpenAI's own client, which sends nothing twice."""
        return AsyncOpenAI(base_url=self.base_url, api_key=key, max_retries=0, timeout=PATIENCE_S)

    def sync_client(self, key: str = "alice") -> OpenAI:
        """Returns OpenAI's own client for threads."""
        return OpenAI(base_url=self.base_url, api_key=key, max_retries=0, timeout=PATIENCE_S)

    async def fill(self) -> None:
        """Indexes the texts as the collection `docs` of alice."""
        async with self.server.client("alice") as client:
            await client.create_collection("docs")
            await client.upsert("docs", [document(name, text) for name, text in TEXTS.items()])


@contextmanager
def http_running(folder: Path, backends: Sequence[dict[str, Any]] = (), **server: Any) -> Iterator[HttpProcess]:
    """Runs a server with the HTTP listener and these backends until the body ends."""
    port = free_port()
    lines = [settings_text(folder, **server), "[http]", f"port = {port}"]
    lines += ["[generation.queue]", "initial_concurrent = 100"]
    for backend in ({"name": "extractive", "kind": "extractive"}, *backends):
        lines += ["[[generation.backends]]", *(f"{name} = {json.dumps(value)}" for name, value in backend.items())]
    with running(folder, "\n".join(lines) + "\n") as found:
        yield HttpProcess(found, f"http://127.0.0.1:{port}/v1")
