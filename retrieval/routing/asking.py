"""What the router is asked and what it says before anything is found, as values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from retrieval.assembly import PassageCounter
from retrieval.dispatch.types import Ticket
from retrieval.speech import Conversation, Tools


@dataclass(frozen=True, slots=True)
class Subject:
    """Who asks, and of what: all that rules may look at before anything is found."""

    tenant: str
    collection: str
    data_policy: str
    in_conversation: bool  # whether there are earlier turns, which may hold anything


@dataclass(frozen=True, slots=True)
class Asking:
    """All that the router looks at besides what was found."""

    backend: str  # a name, or `auto`
    subject: Subject
    instructions: str
    question: str
    conversation: Conversation  # what the model gets to read of the earlier turns
    tools: Tools | None
    max_output_tokens: int
    asked_context_tokens: int
    max_cost: float  # 0 for the configured ceiling
    ticket: Ticket

    @property
    def who(self) -> Subject:
        """Who asks, as rules see it: whatever its subject says, with earlier turns to read it is in a conversation."""
        if self.subject.in_conversation or not self.conversation:
            return self.subject
        return replace(self.subject, in_conversation=True)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the context is to be assembled before the choice is made: as wide as any allowed backend can take it."""

    counter: PassageCounter
    context_tokens: int
