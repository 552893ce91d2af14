"""How many requests one server gets at once: raised while its time to first token allows, lowered when it does not.

A server of a language model has so many slots; a request beyond them waits inside, and what grows is the time to first
token. Where it shares its compute instead, that time grows with each request. So the signal is that time against its
`baseline`, what it costs on a server that is not full, as in Netflix's Gradient2 and Envoy's gradient controller. It is
judged over windows of requests that were all sent after the last change, in logarithms and beyond the standard error.

- Up: by half before the first sign of a full server, by one and a thirty-second afterwards, and only when the limit
  was reached: traffic that does not need more says nothing about more.
- Down: by 15 % when the time exceeds `tolerance` times the baseline, by 30 % when it does so by far. A slot too many
  already costs a multiple, so how far it is exceeded says little about how far to go. By 20 % when the server refuses
  or times out, once a round trip: only for a request that was sent after the last such step.
- The baseline comes down whenever a window is faster. It goes up only on evidence that load is not the cause: when at
  most half of the limit was used, when there is only one request at a time, or when a limit lowered by 30 % or more
  made the server hardly faster. Even then it moves half of the way, so that one odd window is not believed outright.
  Such a step down comes by itself with a server that is too slow; on one that has long been used to the full it is
  tried out now and then (`_DIP`), since a baseline that was taken under load would otherwise never be found out.
"""

from __future__ import annotations

import math

from retrieval.dispatch.window import Window

_TIMES = 8  # that make a window, at least
_DIP_TIMES = 5  # the same in a dip, which costs throughput while it lasts
_SLOW = 0.85  # what is left of the limit when the time is too long
_FAR_TOO_SLOW = 0.7  # the same when it is longer than the cube of the tolerance
_REFUSED = 0.8  # what is left of the requests that run when the server refuses
_STEEPEST = 0.5  # what is left of the limit at least, however few run
_DIP = 0.4  # what is left of the limit while it is tried out whether the server is faster with less
_CLEARLY_LESS = 0.7  # of the limit, with which a server that is too full must be faster
_FIRST_DIP = 4  # full windows before a dip, when the baseline has just been lowered
_LAST_DIP = 128  # the same when many dips have found nothing
_NOTABLE = 0.3  # by which the logarithm of the baseline must fall in a dip for the next one to come soon
_SURE = 2.0  # standard errors beyond which a window moves the baseline


class AdaptiveLimit:
    """The limit of one server, between 1 and `maximum`."""

    def __init__(self, initial: int, maximum: int, now_ns: int) -> None:
        self._limit = float(min(initial, maximum))
        self._maximum = maximum
        self._baseline: float | None = None  # logarithm of nanoseconds
        self._dipping = False
        self._window = Window(self.value, now_ns)
        self._before: Window | None = None  # the last one before the limit was lowered, while it is not raised again
        self._full_windows = 0  # since the last dip
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
        if self._window.settled(_DIP_TIMES if self._dipping else _TIMES):
            self._judge(self._window, math.log(tolerance))
            self._window = Window(self.value, now_ns)

    def refused(self, sent_ns: int, running: int, now_ns: int) -> None:
        """Takes a refusal or a timeout of a request."""
        if sent_ns <= self._lowered_ns:
            return
        self._lower(max(self._limit * _STEEPEST, min(self._limit, running) * _REFUSED))
        self._lowered_ns = now_ns
        self._dipping = False
        self._before = None
        self._window = Window(self.value, now_ns)

    def _judge(self, window: Window, tolerance: float) -> None:
        """Moves the baseline and the limit by what the window says of them."""
        known = self._base(window)
        self._learn(window)
        excess = window.mean - window.error - self._base(window)
        if self._dipping:
            self._end_dip(window, tolerance, known - self._base(window))
        elif excess <= tolerance:
            self._before = None
            if window.full:
                self._raise(window)
        elif not window.light:
            self._before = self._before or window
            self._lower(window.most_running * (_FAR_TOO_SLOW if excess > 3 * tolerance else _SLOW))

    def _end_dip(self, window: Window, tolerance: float, baseline_fell: float) -> None:
        before, self._before, self._dipping = self._before, None, False
        if baseline_fell > _NOTABLE:
            self._dip_after = _FIRST_DIP
            if before is not None and before.mean - window.mean > tolerance:
                self._lower(window.limit)

    def _base(self, window: Window) -> float:
        return window.mean if self._baseline is None else self._baseline

    def _lower(self, limit: float) -> None:
        self._limit = max(1.0, min(self._limit, limit))
        self._congested = True

    def _raise(self, window: Window) -> None:
        self._full_windows += 1
        if self._full_windows >= self._dip_after and self.value > 1:
            self._full_windows = 0
            self._dip_after = min(_LAST_DIP, 2 * self._dip_after)
            self._dipping = True
            self._before = window
            return
        step = 1.0 + self._limit / 32 if self._congested else max(1.0, self._limit / 2)
        self._limit = min(float(self._maximum), self._limit + step)

    def _learn(self, window: Window) -> None:
        """Moves the baseline to what the window says about a server that is not full."""
        base = self._base(window)
        if window.mean + _SURE * window.error < base:
            base += (window.mean - base) * (1.0 if self._dipping else 0.5)
        elif window.mean - _SURE * window.error > base and self._load_is_not_the_cause(window):
            base += (window.mean - base) / 2
            self._before = None
        self._baseline = base

    def _load_is_not_the_cause(self, window: Window) -> bool:
        if window.light:
            return True
        before = self._before
        if before is None or window.limit > before.limit * _CLEARLY_LESS:
            return False
        hoped_for = math.log(window.limit / before.limit) / 2
        return window.mean - before.mean - math.hypot(window.error, before.error) > hoped_for
