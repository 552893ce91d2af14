"""How many requests one server gets at once: raised while its time to first token allows, lowered when it does not.

A server of a language model has so many slots; a request beyond them waits inside, and what grows is the time to first
token. Where it shares its compute instead, that time grows with each request. So the signal is that time against its
`baseline`, what it costs on a server that is not full, as in Netflix's Gradient2 and Envoy's gradient controller. It is
judged over windows of requests that were all sent after the last change, in logarithms and beyond the standard error.

- Up: by half before the first sign of a full server, by one and a thirty-second afterwards, and only when the limit
  was reached: traffic that does not need more says nothing about more.
- Down: by 15 % when the time exceeds `tolerance` times the baseline. A slot too many already costs a multiple, so how
  far it is exceeded says little about how far to go. By 30 % of what runs when the server refuses or times out, but at
  most by half, and once a round trip: only for a request that was sent after the last such step.
- The baseline comes down whenever a window is faster. It goes up only on evidence that load is not the cause: when
  less than half of the limit was used, when there is only one request at a time, or when a limit lowered by 30 % made
  the server hardly faster. Even then it moves half of the way, so that one odd window is not believed outright.
  Such a step down comes by itself with a server that is too slow; on one that has long been used to the full it is
  tried out now and then (`_DIP`), since a baseline that was taken under load would otherwise never be found out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from retrieval.dispatch.window import Window

_TIMES = 6  # that make a window, at least
_TIMES_SHARE = 0.25  # of the limit, that make a window
_SLOWER = 0.85  # what is left of the limit when the time is too long
_REFUSED = 0.7  # what is left of the requests that run when the server refuses
_STEEPEST = 0.5  # what is left of the limit at least when the server refuses
_DIP = 0.7  # what is left of the limit while it is tried out whether the server is faster with less
_FIRST_DIP = 4  # full windows between two dips, at first
_LAST_DIP = 64  # full windows between two dips, at last
_SURE = 2.0  # standard errors beyond which a window moves the baseline


@dataclass(frozen=True, slots=True)
class _Mark:
    """What the server did before the limit was lowered, to be compared with what it does afterwards."""

    limit: float
    mean: float


class AdaptiveLimit:
    """The limit of one server, between 1 and `maximum`."""

    def __init__(self, initial: int, maximum: int, now_ns: int) -> None:
        self._limit = float(min(initial, maximum))
        self._maximum = maximum
        self._baseline: float | None = None
        self._window = Window(now_ns)
        self._mark: _Mark | None = None
        self._dipping = False
        self._full_windows = 0
        self._dip_after = _FIRST_DIP
        self._congested = False
        self._lowered_ns = now_ns

    @property
    def value(self) -> int:
        """How many requests the server may get at once now."""
        return max(1, int(self._limit * (_DIP if self._dipping else 1.0)))

    def sent(self, running: int) -> None:
        """Notes that a request is sent, as one of so many."""
        self._window.sent(running)

    def first_token(self, sent_ns: int, now_ns: int, tolerance: float) -> None:
        """Takes the time to first token of a request."""
        if sent_ns < self._window.opened_ns:
            return
        self._window.add(now_ns - sent_ns)
        if self._window.count >= max(_TIMES, self.value * _TIMES_SHARE):
            self._judge(self._window, math.log(tolerance))
            self._window = Window(now_ns)

    def refused(self, sent_ns: int, running: int, now_ns: int) -> None:
        """Takes a refusal or a timeout of a request."""
        if sent_ns < self._lowered_ns:
            return
        self._limit = max(1.0, self._limit * _STEEPEST, min(self._limit, running) * _REFUSED)
        self._lowered_ns = now_ns
        self._congested = True
        self._dipping = False
        self._mark = None
        self._window = Window(now_ns)

    def _judge(self, window: Window, tolerance: float) -> None:
        full = window.most_running >= self.value
        self._learn(window)
        slow = window.mean - window.error > self._base(window) + tolerance
        if self._dipping:
            self._dipping = False
            self._mark = None
        elif slow:
            self._lower(window)
        else:
            self._mark = None
            if full:
                self._raise(window)

    def _base(self, window: Window) -> float:
        return window.mean if self._baseline is None else self._baseline

    def _lower(self, window: Window) -> None:
        self._mark = self._mark or _Mark(self._limit, window.mean)
        self._limit = max(1.0, self._limit * _SLOWER)
        self._congested = True

    def _raise(self, window: Window) -> None:
        self._full_windows += 1
        if self._full_windows >= self._dip_after and self.value > 1:
            self._full_windows = 0
            self._dip_after = min(_LAST_DIP, 2 * self._dip_after)
            self._dipping = True
            self._mark = _Mark(self._limit, window.mean)
            return
        step = 1.0 + self._limit / 32 if self._congested else max(1.0, self._limit / 2)
        self._limit = min(float(self._maximum), self._limit + step)

    def _learn(self, window: Window) -> None:
        """Moves the baseline to what the window says about a server that is not full."""
        base = self._base(window)
        if window.mean + _SURE * window.error < base:
            base += (window.mean - base) * (1.0 if self._dipping else 0.5)
            self._dip_after = _FIRST_DIP
        elif window.mean - _SURE * window.error > base and self._load_is_not_the_cause(window):
            base += (window.mean - base) / 2
            self._mark = None
        self._baseline = base

    def _load_is_not_the_cause(self, window: Window) -> bool:
        if self.value == 1 or window.most_running <= self._limit / 2:
            return True
        if self._mark is None or self.value > self._mark.limit * _DIP:
            return False
        return window.mean > self._mark.mean + math.log(_DIP) / 2
