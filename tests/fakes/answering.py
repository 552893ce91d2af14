"""Backends that answer as a test says, and count how often they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from retrieval.assembly import PassageCounter
from retrieval.speech import BackendEnd, Delta, FinishReason, GenerationParams, Usage
from retrieval.types import Prompt


@dataclass
class ScriptedAnswers:
    """A backend that writes what `write` makes of a prompt, a word at a time; `gate` holds it back until it is set."""

    counter: PassageCounter
    write: Callable[[Prompt], str]
    finish: FinishReason = FinishReason.STOP
    name: str = "scripted"
    model: str = "script-1"
    context_window_tokens: int = 4096
    asked: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Gives the answer in pieces."""
        self.asked.append(prompt.question)
        if self.gate is not None:
            await self.gate.wait()
        for word in self.write(prompt).split(" "):
            yield Delta(f"{word} ")
        yield BackendEnd(self.finish, Usage(10, 5), self.model)

    async def close(self) -> None:
        """Has nothing to close."""


def quote_first(prompt: Prompt) -> str:
    """Quotes the first source and cites it."""
    first = prompt.context.citations[0]
    return f"{first.passage.text} [{first.number}]"
