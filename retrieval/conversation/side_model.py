"""What writes a few words beside the answer: a follow-up as a question of its own, a summary of what has no room."""

from __future__ import annotations

from typing import Protocol


class SideModel(Protocol):
    """A model behind the same hard rules as the request that it is asked for."""

    async def write(self, instructions: str, text: str, max_output_tokens: int, deadline_ns: int) -> tuple[str, str]:
        """Returns what the model wrote to the text under the instructions, whole, and the name of its backend.

        `deadline_ns` is on the clock of `time.monotonic_ns`.

        Raises:
            BackendError: no backend may answer, or the one asked failed.
            Overloaded: there is no room for one more request.
            DeadlineExceeded: it took too long.
        """
        ...
