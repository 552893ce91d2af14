"""Side models without a model: one that writes from a script, one that waits until it is told to write."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence


class ScriptedModel:
    """Writes what it was given, in order; an exception among it is raised."""

    def __init__(self, *script: str | Exception) -> None:
        self._script = list(script)
        self.asked: list[tuple[str, str, int, int]] = []

    async def write(self, instructions: str, text: str, max_output_tokens: int, deadline_ns: int) -> tuple[str, str]:
        self.asked.append((instructions, text, max_output_tokens, deadline_ns))
        said = self._script.pop(0)
        if isinstance(said, Exception):
            raise said
        return said, "scripted"

    @property
    def texts(self) -> Sequence[str]:
        return [text for _, text, _, _ in self.asked]


class WaitingModel:
    """Writes once `go` is set."""

    def __init__(self, written: str = "They spoke of pumps.") -> None:
        self.go = asyncio.Event()
        self.asked = 0
        self._written = written

    async def write(self, instructions: str, text: str, max_output_tokens: int, deadline_ns: int) -> tuple[str, str]:
        del instructions, text, max_output_tokens, deadline_ns
        self.asked += 1
        await self.go.wait()
        return self._written, "waiting"
