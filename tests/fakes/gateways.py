"""A whole server in this process before scripted OpenAI-compatible ones: real engines, real gRPC, real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio

from encoders.types import WorkClass
from headrace.v1 import retrieval_pb2, retrieval_pb2_grpc
from indexers.types import CollectionKey, Document, FieldType
from retrieval.client import Client, retrieve_request
from retrieval.live import LiveSettings
from retrieval.server.app import App, build
from retrieval.server.listening import channel_options, listen_tcp
from retrieval.settings.load import Loaded, load_settings

PATIENCE_S = 30.0
COLLECTION = "docs"
QUESTION = "How tight is valve 7?"
TEXTS = {
    "valve": "Valve 7 is tightened to 40 newton metres. Use a torque wrench.",
    "pump": "The pump seal is replaced every two years. Order part K16 in advance.",
    "soup": "Tomato soup is made of tomatoes, onions and a little salt.",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """What a caller got of an answer."""

    text: str
    reasoning: str
    completed: retrieval_pb2.Completed | None
    retrieved: retrieval_pb2.RetrieveResponse | None
    deltas: tuple[retrieval_pb2.Delta, ...] = ()


@dataclass(frozen=True, slots=True)
class Gateway:
    """A server with a small collection, and a client of it."""

    app: App
    client: Client
    address: str
    live: LiveSettings
    flags: dict[str, Any]  # the settings by path; what is changed here holds after `live.reload()`

    async def ask(self, question: str = QUESTION, **request: Any) -> Answered:
        """Asks, and returns what came; an error of the call is raised."""
        wanted = retrieval_pb2.GenerateRequest(retrieve=retrieve_request(COLLECTION, question), **request)
        return await collected(self.client, wanted)


async def collected(client: Client, wanted: retrieval_pb2.GenerateRequest) -> Answered:
    """Returns all that a call gives."""
    deltas: list[retrieval_pb2.Delta] = []
    completed = retrieved = None
    async for event in client.generate(wanted):
        kind = event.WhichOneof("event")
        if kind == "delta":
            deltas.append(event.delta)
        elif kind == "completed":
            completed = event.completed
        else:
            retrieved = event.retrieved
    text, reasoning = "".join(each.text for each in deltas), "".join(each.reasoning for each in deltas)
    return Answered(text, reasoning, completed, retrieved, tuple(deltas))


def openai_backend(name: str, base_url: str, **settings: Any) -> dict[str, Any]:
    """Returns the settings of a backend at a scripted server."""
    return {"name": name, "kind": "openai", "base_url": base_url, "model": "served", "retries": 0} | settings


@asynccontextmanager
async def gateway(
    folder: Path, backends: Sequence[dict[str, Any]], texts: dict[str, str] | None = None, **settings: Any
) -> AsyncIterator[Gateway]:
    """Serves the texts with these backends, the first of which is the default one unless the settings say otherwise."""
    flags: dict[str, Any] = {
        "data.folder": str(folder / "data"),
        "server.port": 0,
        "encoders.workers": 1,
        "generation.backends": list(backends),
        "generation.default_backend": backends[0]["name"],
        "generation.resilience.backoff_ms": 1,
    } | settings

    def load() -> Loaded:
        return load_settings(None, {}, flags)

    live = LiveSettings(load(), load)
    async with build(live) as app:
        index = await app.engines.catalog.create(CollectionKey("default", COLLECTION), {"kind": FieldType.KEYWORD}, "")
        documents = [Document(name, name, text, metadata={"kind": name}) for name, text in (texts or TEXTS).items()]
        await app.indexer_of(index).upsert(documents, WorkClass.BULK)
        server = grpc.aio.server(interceptors=[app.guard], options=channel_options(live.current.server))
        retrieval_pb2_grpc.add_RetrievalServiceServicer_to_server(app.retrieval, server)
        address = listen_tcp(server, live.current.server)
        await server.start()
        try:
            async with Client(address, timeout_s=PATIENCE_S) as client:
                yield Gateway(app, client, address, live, flags)
        finally:
            await server.stop(0.5)
