"""How many hits are worth reading: those above the largest drop of the score from one rank to the next."""

from __future__ import annotations

from collections.abc import Sequence


def cut_at_gap(scores: Sequence[float], least: int, most: int) -> int:
    """Returns how many of the first hits are kept: as many as stand above the largest gap, `least` to `most` of them.

    Scores are descending and no NaN. Of equal gaps the last one counts, so where all scores are the same as many as
    allowed are kept; all of them when there are `least` or fewer.
    """
    longest = min(most, len(scores))
    places = range(max(1, least), min(longest, len(scores) - 1) + 1)
    if not places:
        return longest
    kept = max(places, key=lambda place: (scores[place - 1] - scores[place], place))
    return kept if scores[kept - 1] > scores[kept] else longest
