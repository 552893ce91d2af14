"""What holds for the terms of every text."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from encoders.terms import count_terms


@given(st.text())
def test_terms_increase_strictly_and_counts_sum_to_the_length(text: str) -> None:
    """The bag is sorted, has no term twice, no empty count, and its counts add up to its length."""
    counted = count_terms(text)
    assert np.all(np.diff(counted.terms.astype(np.int64)) > 0)
    assert np.all(counted.counts > 0)
    assert int(counted.counts.sum()) == counted.length
    assert counted.terms.dtype == np.uint32
    assert counted.counts.dtype == np.uint16


@given(st.text(), st.text())
def test_terms_of_two_lines_are_the_terms_of_both(one: str, other: str) -> None:
    """A line break separates words, so counting is additive over lines."""
    together = count_terms(f"{one}\n{other}")
    assert set(together.terms.tolist()) == set(count_terms(one).terms.tolist()) | set(count_terms(other).terms.tolist())
    assert together.length == count_terms(one).length + count_terms(other).length
