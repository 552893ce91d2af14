"""What belongs to one call: its name, its caller, its deadline, its clock; the servicers ask for it by `current_call`.

It travels in a context variable, since gRPC runs each call in a task of its own and fixes what a servicer is handed.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field

from retrieval.clock import Ledger, StageClock
from retrieval.deadline import Deadline
from retrieval.reuse import ReuseReport
from retrieval.scope import Identity
from retrieval.types import Completed, GenerateEvent, Retrieved

REQUEST_ID = "x-request-id"
_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class Call:
    """One call while it runs; the last three are what the servicer notes for the log line and the metrics."""

    method: str
    request_id: str
    clock: StageClock
    deadline: Deadline
    identity: Identity
    ledger: Ledger | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    reuse: ReuseReport | None = None  # of a whole answer

    def note(self, event: GenerateEvent) -> None:
        """Keeps what the log line and the metrics say of an answer."""
        if isinstance(event, Retrieved):
            self.ledger = event.ledger
            self.sizes |= {"hits": len(event.hits), "context_tokens": event.context.token_count}
        elif isinstance(event, Completed):
            self.ledger, self.reuse = event.ledger, event.reuse
            self.sizes |= {"prompt_tokens": event.usage.prompt_tokens, "output_tokens": event.usage.output_tokens}


_current: ContextVar[Call] = ContextVar("headrace_call")


def current_call() -> Call:
    """Returns the call that is being served."""
    return _current.get()


def enter_call(call: Call) -> None:
    """Makes the call the current one of this task."""
    _current.set(call)


def request_id_of(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Returns the caller's name for the request when it is a sane one, otherwise a new one."""
    for name, value in metadata:
        if name == REQUEST_ID and isinstance(value, str) and _SANE.fullmatch(value):
            return value
    return uuid.uuid4().hex
