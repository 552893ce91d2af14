"""Where hits are cut."""

from __future__ import annotations

import pytest

from retrieval.assembly.gap import cut_at_gap


@pytest.mark.parametrize(
    ("scores", "least", "most", "kept"),
    [
        ([0.9, 0.88, 0.4, 0.39], 1, 4, 2),
        ([0.9, 0.4, 0.39, 0.1], 2, 4, 3),  # the larger gap lies before the bound
        ([0.9, 0.88, 0.87, 0.1], 1, 2, 1),  # the larger gap lies behind the bound
        ([0.9, 0.8, 0.1], 1, 2, 2),  # the gap behind the last allowed hit counts
        ([4.0, 3.0, 2.0, 1.0], 1, 3, 3),  # of equal gaps the last
        ([0.5, 0.5, 0.5], 1, 2, 2),  # no gap at all
        ([0.5, 0.1], 3, 5, 2),
        ([0.5], 1, 5, 1),
        ([], 1, 5, 0),
    ],
)
def test_cut_keeps_hits_above_the_largest_gap(scores: list[float], least: int, most: int, kept: int) -> None:
    """Hits above the largest gap within the bounds are kept."""
    assert cut_at_gap(scores, least, most) == kept
