"""What a generation backend is to the service: one attempt at an answer, streamed, that says how it ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from retrieval.assembly import PassageCounter
from retrieval.speech import BackendEnd, Delta, GenerationParams
from retrieval.types import Prompt


class Backend(Protocol):
    """Writes an answer to a prompt, on one server. Shared by all requests."""

    @property
    def name(self) -> str:
        """What requests call it."""
        ...

    @property
    def model(self) -> str:
        """What it asks its server for."""
        ...

    @property
    def context_window_tokens(self) -> int:
        """Tokens of prompt and answer together."""
        ...

    @property
    def counter(self) -> PassageCounter:
        """Counts as the model does."""
        ...

    def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        """Asks once, and gives the answer in pieces, then one `BackendEnd`; without it the answer was cut.

        A piece holds text, reasoning, pieces of tool calls, or several of them, and none is wholly empty. Nothing is
        ever asked again here: who calls knows what has been shown, and where else to ask.

        Close the generator (`contextlib.aclosing`) to stop the work; it frees what it holds before that returns.

        Raises:
            BackendUnavailable: it failed before the first piece; `transient` when the same may work in a moment.
            BackendTimeout: no piece within the backend's time or before `params.deadline_ns`.
            BackendCut: it broke off or stalled after the first piece.
        """
        ...

    async def close(self) -> None:
        """Frees connections. Nothing may be streamed afterwards."""
        ...
