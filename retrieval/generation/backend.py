"""What a generation backend is to the pipeline: a stream of text that ends with how it ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from retrieval.assembly import PassageCounter
from retrieval.types import BackendEnd, Delta, GenerationParams, Prompt


class Backend(Protocol):
    """Writes an answer to a prompt. Shared by all requests."""

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
        """Gives the answer in pieces, none of them empty, then one `BackendEnd`; without it the answer was cut.

        Close the generator (`contextlib.aclosing`) to stop the work; it frees what it holds before that returns.

        Raises:
            BackendUnavailable: it failed before the first piece.
            BackendTimeout: no piece within the backend's time or before `params.deadline_ns`.
            BackendCut: it broke off after the first piece.
        """
        ...

    async def close(self) -> None:
        """Frees connections. Nothing may be streamed afterwards."""
        ...
