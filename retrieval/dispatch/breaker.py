"""When a server is left alone, and when it is tried again.

After some failures in a row it gets nothing for a while; then a single request tries it, and each such failure doubles
the while. What a request reports counts only in the state that it was sent in: a crowd of requests that time out long
after a probe has found the server well does not close it off again.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass

from retrieval.settings.generation import ResilienceSettings

MAX_DOUBLINGS = 5
"""The longest that a server gets nothing is `open_ms` doubled so often."""


class BreakerState(enum.Enum):
    """Whether a server gets requests."""

    CLOSED = "closed"  # it does
    OPEN = "open"  # it gets none
    HALF_OPEN = "half_open"  # a single one may try it


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send a request; goes back with how that went."""

    epoch: int
    probe: bool


class Breaker:
    """Counts a server's failures in a row. For one event loop."""

    def __init__(
        self, settings: Callable[[], ResilienceSettings], now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._settings = settings
        self._now_ns = now_ns
        self._epoch = 0  # how often the state has changed
        self._failures = 0  # in a row, while closed
        self._openings = 0  # in a row, since an answer was whole
        self._open_until_ns: int | None = None  # None while closed
        self._probing = False

    @property
    def state(self) -> BreakerState:
        """The state that it is in now."""
        if self._open_until_ns is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self.left_alone_ns else BreakerState.HALF_OPEN

    @property
    def left_alone_ns(self) -> int:
        """How long the server will still get nothing."""
        until_ns = self._open_until_ns
        return 0 if until_ns is None else max(0, until_ns - self._now_ns())

    @property
    def admits(self) -> bool:
        """Whether a request may be sent now."""
        return self._open_until_ns is None or not (self._probing or self.left_alone_ns)

    def enter(self) -> Permit | None:
        """Returns leave to send a request; None when none may be sent."""
        if not self.admits:
            return None
        self._probing = self._open_until_ns is not None
        return Permit(self._epoch, self._probing)

    def begun(self, permit: Permit) -> Permit:
        """Notes a first piece, which is all that a probe has to find out; returns the permit to come back with."""
        if not (permit.probe and self._is_current(permit)):
            return permit
        self._change(None)
        return Permit(self._epoch, probe=False)

    def succeed(self, permit: Permit) -> None:
        """Notes a whole answer."""
        if self._is_current(permit):
            self._failures = self._openings = 0

    def fail(self, permit: Permit) -> bool:
        """Notes a failure; returns whether the server is left alone from now on."""
        if not self._is_current(permit):
            return False
        self._failures += 1
        settings = self._settings()
        if not permit.probe and self._failures < settings.failures_to_open:
            return False
        self._change(self._now_ns() + settings.open_ms * 10**6 * 2 ** min(self._openings, MAX_DOUBLINGS))
        self._openings += 1
        return True

    def forget(self, permit: Permit) -> None:
        """Takes a permit back of which nothing is learnt, such as that of a caller who left."""
        if permit.probe and self._is_current(permit):
            self._probing = False

    def _is_current(self, permit: Permit) -> bool:
        return permit.epoch == self._epoch

    def _change(self, open_until_ns: int | None) -> None:
        self._open_until_ns = open_until_ns
        self._epoch += 1
        self._failures = 0
        self._probing = False
