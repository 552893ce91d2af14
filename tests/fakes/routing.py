"""What router tests are made of: services whose outlook a test sets, and contexts of short passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from indexers.types import Epoch, Metadata, Passage
from retrieval.assembly import PassageCounter, assemble
from retrieval.dispatch.types import Outlook, Service, Ticket
from retrieval.route import Priority
from retrieval.routing import Asking, Router, Subject
from retrieval.settings.generation import AUTO, BackendSettings, GenerationSettings, RouteRule, RoutingSettings
from retrieval.speech import Conversation
from retrieval.types import Context, Found, Hit, ScoreParts
from tests.fakes.counters import WordCounter

NOW_NS = 1_000_000_000_000
MS = 1_000_000
S = 1_000_000_000
SUBJECT = Subject("acme", "docs", "", in_conversation=False)
TICKET = Ticket("acme", Priority.INTERACTIVE, NOW_NS + 60 * S)


def outlook(
    *,
    healthy: bool = True,
    wait_ms: float = 0.0,
    first_token_ms: float = 300.0,
    token_ms: float = 20.0,
    output_tokens: float = 100.0,
) -> Outlook:
    """Returns an outlook; by default 300 ms to the first token and 20 ms for each of 100 more."""
    return Outlook(
        healthy, int(wait_ms * MS), int(first_token_ms * MS), int(token_ms * MS), output_tokens, running=0, waiting=0
    )


UNKNOWN = outlook(first_token_ms=0, token_ms=0, output_tokens=0)


@dataclass
class StillService:
    """A service that expects what it was told to."""

    settings: BackendSettings
    expected: Outlook = field(default_factory=outlook)
    counter: PassageCounter = field(default_factory=WordCounter)
    model: str = "still"

    def outlook(self, ticket: Ticket) -> Outlook:
        return self.expected


def service(
    name: str, expected: Outlook | None = None, counter: PassageCounter | None = None, **set_: object
) -> Service:
    """Returns the service of a backend with these settings."""
    settings = BackendSettings.model_validate({"name": name, "kind": "extractive", **set_})
    return StillService(settings, expected or outlook(), counter or WordCounter())


def router(services: Sequence[Service], rules: Sequence[RouteRule] = (), **weights: float) -> Router:
    """Returns a router over the services, with a clock that stands still."""
    routing = RoutingSettings.model_validate({"rules": tuple(rules), **weights})
    settings = GenerationSettings.model_construct(routing=routing)
    return Router({each.settings.name: each for each in services}, lambda: settings, lambda: NOW_NS)


def asking(backend: str = AUTO, **changed: object) -> Asking:
    """Returns an ordinary question."""
    usual: dict[str, object] = {
        "backend": backend,
        "subject": SUBJECT,
        "instructions": "Answer from the sources.",
        "question": "When was the pump built?",
        "conversation": Conversation(),
        "tools": None,
        "max_output_tokens": 128,
        "asked_context_tokens": 1500,
        "max_cost": 0.0,
        "ticket": TICKET,
    }
    return Asking(**{**usual, **changed})  # type: ignore[arg-type]


def passage(number: int, words: int = 20, metadata: Metadata | None = None) -> Passage:
    """Returns a passage of its own document."""
    text = " ".join(f"w{number}x{place}" for place in range(words))
    return Passage(f"c{number}", f"d{number}", f"Title {number}", (), text, 0, len(text), 0, 0, metadata or {})


def found(
    passages: Sequence[Passage], counter: PassageCounter | None = None, scores: Sequence[float] | None = None
) -> Found:
    """Returns what a retrieval of these passages found, best first."""
    given = scores or [0.9 - 0.05 * rank for rank in range(len(passages))]
    hits = tuple(Hit(each, score, ScoreParts()) for each, score in zip(passages, given, strict=True))
    return Found(hits, context(hits, counter), Epoch(1, 1))


def context(hits: Sequence[Hit], counter: PassageCounter | None = None) -> Context:
    """Assembles hits without a narrow budget."""
    return assemble(hits, 1500, counter or WordCounter(), 1.0, -1.0)
