"""Bounds one await after another with a single timer, for streams: `asyncio.timeout` makes and drops a timer each time.

A timer that rings before the time that is set by then is set anew; one that rings while nothing is awaited is made
again when something is. What a cancel means is told apart as `asyncio.timeout` does it.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class Alarm:
    """A time-out for the awaits of one stream, one at a time: `with alarm.after(seconds): await ...`. Close it."""

    __slots__ = ("_cancelling", "_due_s", "_handle", "_loop", "_rung", "_task")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None  # that awaits now
        self._due_s = 0.0
        self._cancelling = 0
        self._rung = False

    def after(self, seconds: float) -> Alarm:
        """Sets the time for the next `with`, whose body raises TimeoutError when it awaits for longer."""
        self._due_s = self._loop.time() + max(0.0, seconds)
        return self

    def close(self) -> None:
        """Gives the timer up."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an alarm is for what a task awaits")
        self._task, self._cancelling, self._rung = task, task.cancelling(), False
        if self._handle is None or self._handle.when() > self._due_s:
            self._set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        assert task is not None
        if self._rung and task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    def _set(self) -> None:
        self.close()
        self._handle = self._loop.call_at(self._due_s, self._ring)

    def _ring(self) -> None:
        self._handle = None
        if self._task is None:
            return
        if self._loop.time() < self._due_s:
            self._set()
            return
        self._rung = True
        self._task.cancel()
