"""How long a call may take: as long as its caller allows, and no longer than the settings do."""

from __future__ import annotations

from retrieval.deadline import Deadline
from retrieval.live import LiveSettings

LONGEST_S = 24 * 3600.0  # imports and builds take as long as they take; this only keeps every wait bounded


class Limits:
    """Gives each call its deadline, by the settings in force."""

    def __init__(self, live: LiveSettings) -> None:
        self._live = live

    def deadline(self, method: str, remaining_s: float | None) -> Deadline:
        """Returns the deadline of a call that starts now; `remaining_s` is the caller's, None when there is none."""
        longest_s = self._longest_s(method)
        return Deadline.after(longest_s if remaining_s is None else min(remaining_s, longest_s))

    def _longest_s(self, method: str) -> float:
        settings = self._live.current
        if method.endswith("/Retrieve"):
            return settings.retrieval.timeout_ms / 1e3
        if method.startswith(("/headrace.v1.RetrievalService/", "/headrace.v1.EncodingService/")):
            return settings.generation.timeout_ms / 1e3
        return LONGEST_S
