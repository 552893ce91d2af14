"""What is said to a model and what it says: turns, tools, pieces of an answer, and how it ended. All immutable."""

from __future__ import annotations

import enum
from dataclasses import dataclass

_CALL_CHARS = 16  # what a piece of a call counts for, however little is in it


class Speaker(enum.Enum):
    """Who said a turn."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier turn of a conversation, oldest first in a request; the text is not blank."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a model gets to read of the earlier turns."""

    turns: tuple[Turn, ...] = ()  # oldest first
    summary: str = ""  # of those before

    def __bool__(self) -> bool:
        return bool(self.turns or self.summary)


NOTHING_SAID = Conversation()


@dataclass(frozen=True, slots=True)
class Tools:
    """Functions that a model may call, as JSON in OpenAI's form; handed on to the backend as they are."""

    definitions: str  # an array of tools
    choice: str = ""  # `tool_choice`; empty leaves it to the server


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """What shapes the text that a backend writes."""

    max_output_tokens: int
    temperature: float
    deadline_ns: int  # on the clock of time.monotonic_ns
    affinity: str = ""  # requests with the same one share a beginning; a hint for servers that keep such caches


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A piece of a call of a function, as the backend sent it: pieces with one index belong together."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""

    @property
    def chars(self) -> int:
        """What it holds, and a little for being there at all."""
        return _CALL_CHARS + len(self.id) + len(self.name) + len(self.arguments)


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer: text, or thoughts of the model apart from it, or a piece of a call of a function."""

    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def chars(self) -> int:
        """What it holds."""
        return len(self.text) + len(self.reasoning) + sum(call.chars for call in self.tool_calls)


class FinishReason(enum.Enum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"
    NO_EVIDENCE = "no_evidence"
    CONTENT_FILTER = "content_filter"
    TOOL_CALLS = "tool_calls"
    OTHER = "other"  # the backend gave a reason that is not known here, or none


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the backend counts them; 0 when it does not say."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class BackendEnd:
    """The last thing that a backend's stream gives; a stream without it was cut."""

    finish_reason: FinishReason
    usage: Usage
    model: str
