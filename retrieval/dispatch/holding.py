"""How long places are held, and so when the next one becomes free."""

from __future__ import annotations

_WEIGHT = 0.1  # of the latest time in the mean, once there have been ten


class HoldingTime:
    """The exponentially weighted mean time from taking a place to giving it back."""

    def __init__(self, now_ns: int) -> None:
        self._mean_ns = 0.0
        self._count = 0
        self._latest_ns = now_ns

    @property
    def mean_ns(self) -> int:
        """The mean; 0 while nothing is known."""
        return int(self._mean_ns)

    def released(self, held_ns: int, now_ns: int) -> None:
        """Takes the time for which a place was held that is given back now."""
        self._count += 1
        self._mean_ns += (held_ns - self._mean_ns) * max(_WEIGHT, 1 / self._count)
        self._latest_ns = now_ns

    def until_free_ns(self, nth: int, places: int, now_ns: int) -> int:
        """Returns the time until the nth place from now becomes free.

        By Little's law: places that are held for the mean time become free one after another at even intervals, the
        next one an interval after the latest.
        """
        interval_ns = self._mean_ns / places
        return int(nth * interval_ns - min(interval_ns, now_ns - self._latest_ns))
