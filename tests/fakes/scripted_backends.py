"""Backends that do what a script says, step by step, and count what was asked of them and what was closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from retrieval.dispatch.dispatcher import Dispatcher
from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.lane import Lane, LaneBounds
from retrieval.dispatch.service import BackendService
from retrieval.dispatch.types import AnswerEvent, Job, Leg, Route, Ticket
from retrieval.route import Priority, RouteReport
from retrieval.settings.generation import BackendSettings, QueueSettings, ResilienceSettings
from retrieval.speech import BackendEnd, Delta, FinishReason, GenerationParams, Usage
from retrieval.types import Arrangement, Context, Prompt
from tests.fakes.counters import WordCounter
from tests.fakes.virtual_time import now_ns

CONTEXT = Context("[1] It is blue.", 5, 100, "words")


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause, in seconds."""

    seconds: float


Step: TypeAlias = Delta | BackendEnd | Exception | Wait | asyncio.Event
Script: TypeAlias = Sequence[Step]

Changed: TypeAlias = Mapping[str, object]
_NONE: Changed = {}

END = BackendEnd(FinishReason.STOP, Usage(10, 3, 4), "script-1")


def says(text: str) -> list[Step]:
    """Returns the script of a whole answer, a word at a time."""
    return [*(Delta(f"{word} ") for word in text.split()), END]


@dataclass
class ScriptedBackend:
    """Plays one script a request, the last one again and again; a script without a `BackendEnd` just ends."""

    scripts: Sequence[Script]
    name: str = "a"
    model: str = "script-1"
    context_window_tokens: int = 4096
    counter: WordCounter = field(default_factory=WordCounter)
    asked: list[tuple[Prompt, GenerationParams]] = field(default_factory=list)
    asked_ns: list[int] = field(default_factory=list)
    open_streams: int = 0
    ended_ns: list[int] = field(default_factory=list)
    closed: bool = False

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Plays the next script."""
        script = self.scripts[min(len(self.asked), len(self.scripts) - 1)]
        self.asked.append((prompt, params))
        self.asked_ns.append(now_ns())
        self.open_streams += 1
        try:
            for step in script:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, Wait):
                    await asyncio.sleep(step.seconds)
                elif isinstance(step, asyncio.Event):
                    await step.wait()
                else:
                    yield step
        finally:
            self.open_streams -= 1
            self.ended_ns.append(now_ns())

    async def close(self) -> None:
        """Notes it."""
        self.closed = True


class NotingArranger:
    """Orders by relevance, and notes what it is told."""

    def __init__(self) -> None:
        self.sent_count = 0
        self.learnt: list[Usage] = []

    def arrange(self, root: str, context: Context) -> Arrangement:
        """Returns the sources as they were assembled."""
        return Arrangement(context.text, ((1, 2), (2, 1)))

    def sent(self, root: str, context: Context, arrangement: Arrangement) -> None:
        """Counts."""
        self.sent_count += 1

    def learn(self, root: str, context: Context, arrangement: Arrangement, usage: Usage) -> None:
        """Keeps the usage."""
        self.learnt.append(usage)


def backend_settings(name: str, **changed: object) -> BackendSettings:
    """Returns the settings of an OpenAI-compatible backend, changed as asked."""
    given: dict[str, object] = {"name": name, "kind": "openai", "base_url": "http://localhost:1/v1", "model": "m"}
    return BackendSettings.model_validate(given | changed)


def service_of(
    backends: Sequence[ScriptedBackend], resilience: Callable[[], ResilienceSettings], **changed: object
) -> BackendService:
    """Returns one backend with these servers, in virtual time."""
    settings = backend_settings(backends[0].name, **changed)
    bounds = LaneBounds(settings.max_concurrent, settings.max_queued, settings.max_concurrent)
    queue = QueueSettings(max_wait_ms=1000)
    endpoints = [
        Endpoint(
            backend,
            number,
            Lane(backend.name, bounds, lambda: queue, now_ns),
            NotingArranger(),
            resilience,
            now_ns=now_ns,
        )
        for number, backend in enumerate(backends)
    ]
    return BackendService(settings, endpoints)


class Bench:
    """A dispatcher over scripted backends, in virtual time, and a route over all of them in order."""

    def __init__(self, *services: Sequence[ScriptedBackend], jitter: float = 0.5, resilience: Changed = _NONE) -> None:
        self.resilience = ResilienceSettings.model_validate({"retry_share": 1.0, **resilience})
        self._backends = services
        self._jitter = jitter

    def open(self, **changed: object) -> Dispatcher:
        """Returns the dispatcher; `changed` are settings of all backends."""
        made = [service_of(backends, lambda: self.resilience, **changed) for backends in self._backends]
        self.services = {service.settings.name: service for service in made}
        self.dispatcher = Dispatcher(self.services, lambda: self.resilience, now_ns=now_ns, jitter=lambda: self._jitter)
        return self.dispatcher

    def route(self, complexity: float = 0.5) -> Route:
        """Returns the route over all backends."""
        legs = tuple(Leg(service, CONTEXT) for service in self.services.values())
        return Route(legs, RouteReport(legs[0].service.settings.name, "only", complexity))

    def stream(self, affinity: str = "", seconds: float = 60.0) -> AsyncGenerator[AnswerEvent, None]:
        """Asks, with a deadline in so many seconds."""
        return self.dispatcher.stream(self.route(), job(affinity, seconds))

    def is_idle(self) -> bool:
        """Whether every place is free and every stream closed."""
        endpoints = [endpoint for service in self.services.values() for endpoint in service.endpoints]
        lanes = [endpoint.lane for endpoint in endpoints]
        streams = sum(backend.open_streams for backends in self._backends for backend in backends)
        return not streams and all(lane.running == 0 and lane.waiting == 0 for lane in lanes)


def job(affinity: str = "", seconds: float = 60.0) -> Job:
    """Returns the job of a question with a deadline in so many seconds."""
    deadline_ns = now_ns() + round(seconds * 1e9)
    return Job(
        Ticket("acme", Priority.INTERACTIVE, deadline_ns),
        GenerationParams(100, 0.0, deadline_ns),
        "root",
        lambda context, sources: Prompt("Answer.", context, "What colour?", sources),
        affinity,
    )
