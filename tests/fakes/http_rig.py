"""The HTTP listener in this process, on loopback, with scripted parts behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from openai import AsyncOpenAI

from headrace.v1 import index_pb2
from indexers.errors import CollectionNotFound
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.identity import Authenticator
from retrieval.live import LiveSettings
from retrieval.server.convert.models import ServedModel
from retrieval.server.draining import Drain
from retrieval.server.gate import Gate
from retrieval.server.http.application import Parts
from retrieval.server.http.listener import listening
from retrieval.server.limits import Limits
from retrieval.server.services.encoding import Counters, EncodingService
from retrieval.settings import Settings
from retrieval.settings.http import HttpSettings
from retrieval.settings.load import Loaded
from retrieval.settings.service import ApiKey, AuthSettings
from retrieval.telemetry.metrics import Metrics
from retrieval.types import GenerateEvent, GenerateRequest, Retrieved
from tests.fakes.encoders import HashEncoder, PieceCounter
from tests.fakes.request_path import ScriptedPath
from tests.fakes.rerankers import ScriptedReranker

MODELS = [
    ServedModel("dense", "hash", "r1", 8, 256, None, None),
    ServedModel("cross_encoder", "scripted", "r1", 0, 256, None, None),
]


class AnsweringPath(ScriptedPath):
    """Answers with the events that a test gives, after what was retrieved; waits at `None` for `go`."""

    def __init__(self, *events: GenerateEvent | BaseException | None, retrieved: Retrieved | None = None) -> None:
        super().__init__()
        self.asked: list[GenerateRequest] = []
        self.go = asyncio.Event()
        self._events = events
        self._retrieved = retrieved

    async def generate(
        self, request: GenerateRequest, clock: StageClock, deadline: Deadline
    ) -> AsyncGenerator[GenerateEvent, None]:
        self.asked.append(request)
        found = await self.retrieve(request.retrieve, clock, deadline)
        yield self._retrieved or found
        try:
            for event in self._events:
                if event is None:
                    self.entered.set()
                    await self.go.wait()
                elif isinstance(event, BaseException):
                    raise event
                else:
                    yield event
        finally:
            self.closed += 1


class TwoCollections:
    """The collections `docs` and `wiki`, a page each."""

    names = ("docs", "wiki")

    async def GetCollection(self, request: index_pb2.GetCollectionRequest, context: Any) -> Any:  # noqa: N802
        if request.name not in self.names:
            raise CollectionNotFound(request.name)
        return index_pb2.GetCollectionResponse(collection=index_pb2.Collection(name=request.name))

    async def ListCollections(self, request: index_pb2.ListCollectionsRequest, context: Any) -> Any:  # noqa: N802
        place = int(request.page_token or 0)
        following = str(place + 1) if place + 1 < len(self.names) else ""
        collections = [index_pb2.Collection(name=self.names[place])]
        return index_pb2.ListCollectionsResponse(collections=collections, next_page_token=following)


@dataclass
class HttpRig:
    """A listener, and what is behind it."""

    path: ScriptedPath = field(default_factory=ScriptedPath)
    encoder: HashEncoder = field(default_factory=HashEncoder)
    metrics: Metrics = field(default_factory=Metrics)
    drain: Drain = field(default_factory=Drain)
    base_url: str = ""
    healthy: bool = True

    def client(self, api_key: str = "none") -> AsyncOpenAI:
        """Returns OpenAI's own client, which sends nothing twice."""
        return AsyncOpenAI(base_url=f"{self.base_url}/v1", api_key=api_key, max_retries=0)

    def http(self, **options: Any) -> httpx.AsyncClient:
        """Returns a plain client."""
        return httpx.AsyncClient(base_url=self.base_url, trust_env=False, timeout=10.0, **options)

    def count(self, method: str, code: str) -> float:
        """Returns how many requests ended so."""
        labels = {"method": method, "code": code}
        return self.metrics.registry.get_sample_value("headrace_requests_total", labels) or 0.0


@asynccontextmanager
async def http_rig(
    *keys: ApiKey, logit_of: Callable[[str], float] | None = None, path: Any = None, **settings: Any
) -> AsyncIterator[HttpRig]:
    """Runs a listener with these keys and settings; without `logit_of` there is no cross-encoder."""
    live = LiveSettings(loaded := Loaded(Settings(auth=AuthSettings(keys=keys)), {}, None), lambda: loaded)
    rig = HttpRig() if path is None else HttpRig(path=path)
    reranker = None if logit_of is None else ScriptedReranker(logit_of)
    parts = Parts(
        path=rig.path,
        gate=Gate(Authenticator(live.current.auth), Limits(live), rig.metrics, rig.drain),
        encoders=EncodingService(rig.encoder, reranker, Counters(PieceCounter(), PieceCounter())),
        collections=TwoCollections(),
        models=MODELS[: 2 if reranker else 1],
        backends=("extractive", "llm"),
        healthy=lambda: rig.healthy and not rig.drain.draining,
        live=live,
    )
    async with listening(parts, HttpSettings(**settings)) as port:
        rig.base_url = f"http://127.0.0.1:{port}"
        yield rig
