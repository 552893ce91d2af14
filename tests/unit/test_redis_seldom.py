"""A fault that repeats is told now and then."""

from __future__ import annotations

from retrieval.caching.redis.seldom import Seldom


def test_seldom_is_due_once_a_minute() -> None:
    """The first time at once, then after each pause, however often it is asked."""
    now_s = [0.0]
    seldom = Seldom(lambda: now_s[0])
    told = []
    for second in range(0, 181, 5):
        now_s[0] = float(second)
        if seldom.due():
            told.append(second)
    assert told == [0, 60, 120, 180]
