"""A stage clock with a second watch around each stage, to tell whether the first one says the truth."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from types import TracebackType

from retrieval.clock import Stage, StageClock


class OutsideClock(StageClock):
    """Counts as a `StageClock` does, and times each stage from outside with another of the system's clocks."""

    def __init__(self) -> None:
        super().__init__()
        self.outside_ns: dict[Stage, int] = {}

    def stage(self, stage: Stage) -> AbstractContextManager[None]:  # type: ignore[override]  # used in `with` alone
        """Returns the stage's own span inside the second watch."""
        return _Watched(super().stage(stage), stage, self.outside_ns)


class _Watched:
    __slots__ = ("_noted_ns", "_span", "_stage", "_started_ns")

    def __init__(self, span: AbstractContextManager[None], stage: Stage, noted_ns: dict[Stage, int]) -> None:
        self._span = span
        self._stage = stage
        self._noted_ns = noted_ns

    def __enter__(self) -> None:
        self._started_ns = time.monotonic_ns()
        self._span.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._span.__exit__(kind, error, traceback)
        self._noted_ns[self._stage] = time.monotonic_ns() - self._started_ns
