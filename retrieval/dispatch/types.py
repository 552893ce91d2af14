"""What is asked of backends and what comes back, as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from retrieval.assembly import PassageCounter
from retrieval.route import GenerationReport, Priority, RouteReport
from retrieval.settings.generation import BackendSettings
from retrieval.speech import BackendEnd, Delta, GenerationParams, Usage
from retrieval.types import Arrangement, Context, Prompt


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request that wants a place at a server."""

    tenant: str
    priority: Priority
    deadline_ns: int  # on the clock of time.monotonic_ns
    since_ns: int = (
        0  # when it began to wait, on the same clock, if it has waited before; its patience counts from then
    )


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a new request may expect of a backend, by the figures of its requests of late."""

    healthy: bool  # whether one of its servers takes requests
    wait_ns: int  # until a place is free
    first_token_ns: int  # from sending to the first token, the median; 0 when nothing is known yet
    token_ns: int  # between later tokens, the median; 0 when nothing is known yet
    output_tokens: float  # of an answer, the mean; 0 when nothing is known yet
    running: int
    waiting: int


class Service(Protocol):
    """A configured backend with all of its servers, as the router sees it."""

    @property
    def settings(self) -> BackendSettings:
        """How it is configured: name, tier, region, window, prices, capability."""
        ...

    @property
    def model(self) -> str:
        """The model, for cache keys."""
        ...

    @property
    def counter(self) -> PassageCounter:
        """Counts as its model does."""
        ...

    def outlook(self, ticket: Ticket) -> Outlook:
        """Returns what a new request may expect."""
        ...


class Arranger(Protocol):
    """Orders the passages of prompts to one server, and remembers what that server has read. For one event loop.

    `root` stands for all that comes before the sources: prompts with different roots share nothing.
    """

    def arrange(self, root: str, context: Context) -> Arrangement:
        """Returns the sources in the order in which they should be sent."""
        ...

    def sent(self, root: str, context: Context, arrangement: Arrangement) -> None:
        """Notes that a prompt with these sources has gone to the server."""
        ...

    def learn(self, root: str, context: Context, arrangement: Arrangement, usage: Usage) -> None:
        """Corrects what is remembered by what the server says it had cached."""
        ...


@dataclass(frozen=True, slots=True)
class Leg:
    """A backend that may answer, with the part of the context that fits into its window."""

    service: Service
    context: Context


@dataclass(frozen=True, slots=True)
class Route:
    """The backends that may answer, best first; no other may see the request, whatever fails."""

    legs: tuple[Leg, ...]  # never empty
    report: RouteReport
    wanted: str = (
        ""  # the backend that would answer if all were well and there was time; an answer of another is a stand-in's
    )


@dataclass(frozen=True, slots=True)
class Job:
    """An answer that is wanted."""

    ticket: Ticket
    params: GenerationParams
    root: str  # names all that stands before the sources in its prompts, see `Arranger`
    prompt: Callable[[Context, Arrangement], Prompt]
    affinity: str = ""  # requests with the same one go to the same server of a backend while it can take them
    permits: Callable[[str], bool] = lambda backend: True  # whether the rules of now let a backend see it


@dataclass(frozen=True, slots=True)
class Began:
    """The first thing that comes: a backend has begun to answer this prompt, and no other will."""

    backend: str
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class Finished:
    """The last thing that comes of a whole answer."""

    end: BackendEnd
    report: GenerationReport


AnswerEvent: TypeAlias = Began | Delta | Finished
