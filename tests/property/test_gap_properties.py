"""What holds for every cut at the largest gap."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.assembly.gap import cut_at_gap

SCORES = st.lists(st.floats(-10, 10) | st.sampled_from([0.0, 0.5, 1.0]), max_size=30).map(
    lambda scores: sorted(scores, reverse=True)
)
BOUNDS = st.tuples(st.integers(1, 20), st.integers(1, 20)).map(lambda pair: (min(pair), max(pair)))


@settings(max_examples=300, deadline=None)
@given(SCORES, BOUNDS)
def test_cut_keeps_its_bounds(scores: list[float], bounds: tuple[int, int]) -> None:
    """No more than `most` hits are kept, and no fewer than `least` of those that there are."""
    least, most = bounds
    assert min(least, len(scores)) <= cut_at_gap(scores, least, most) <= min(most, len(scores))


@settings(max_examples=300, deadline=None)
@given(SCORES, BOUNDS)
def test_cut_has_no_larger_gap_within_its_bounds(scores: list[float], bounds: tuple[int, int]) -> None:
    """The drop below the last kept hit is as large as any other that the bounds allow."""
    least, most = bounds
    kept = cut_at_gap(scores, least, most)
    gaps = {place: scores[place - 1] - scores[place] for place in range(1, len(scores))}
    allowed = [gaps[place] for place in range(least, most + 1) if place in gaps]
    if allowed and max(allowed) > 0:
        assert gaps[kept] == max(allowed)


@settings(max_examples=100, deadline=None)
@given(SCORES, BOUNDS, st.integers(1, 4))
def test_cut_goes_by_proportions(scores: list[float], bounds: tuple[int, int], power: int) -> None:
    """Scores on another scale, an exact one, are cut at the same place."""
    assert cut_at_gap([score * 2**power for score in scores], *bounds) == cut_at_gap(scores, *bounds)
