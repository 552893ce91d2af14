"""Learned term weights as they are stored, and what is counted of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from encoders.learned import NO_LEARNED_STATISTICS, LearnedStatistics, stored_weights
from encoders.statistics_file import load_statistics, save_statistics
from encoders.term_statistics import document_vector
from encoders.types import SparseVector, TermCounts


def _vector(**weights: float) -> SparseVector:
    pairs = sorted((int(name.removeprefix("w")), weight) for name, weight in weights.items())
    return SparseVector(
        np.array([word for word, _ in pairs], dtype=np.uint32),
        np.array([weight for _, weight in pairs], dtype=np.float32),
    )


_TEXTS = [_vector(w3=0.5, w9=2.25), _vector(w3=1.75), _vector(w9=0.125, w700=3.0), _vector()]


@pytest.fixture
def statistics() -> LearnedStatistics:
    """Counts the texts."""
    return NO_LEARNED_STATISTICS.collected(map(stored_weights, _TEXTS))


def test_stored_weights_come_back_as_the_model_gave_them() -> None:
    """A weight is kept to a 4096th, whatever the collection holds."""
    given = _vector(w1=0.7321, w2=3.1, w5=0.0004)
    found = document_vector(stored_weights(given), NO_LEARNED_STATISTICS)
    np.testing.assert_array_equal(found.indices, given.indices)
    np.testing.assert_allclose(found.values, given.values, atol=0.5 / 4096)


def test_weight_that_rounds_to_nothing_is_left_out_and_a_huge_one_saturates() -> None:
    """No stored weight is zero, and none wraps round."""
    stored = stored_weights(_vector(w1=1e-5, w2=99.0))
    assert stored.terms.tolist() == [2]
    assert stored.counts.tolist() == [65_535]


def test_bound_is_the_query_s_weight_times_the_highest_of_each_word(statistics: LearnedStatistics) -> None:
    """A word that no text has counts with the highest weight of all; no text's score passes the bound."""
    assert statistics.upper_bound(_vector(w3=2.0, w9=1.0)) == 2.0 * 1.75 + 2.25
    assert statistics.upper_bound(_vector(w4=1.0)) == 3.0
    assert statistics.upper_bound(_vector(w3=2.0, w900=1.0)) == 2.0 * 1.75 + 3.0
    assert statistics.upper_bound(_vector()) == 0.0
    assert NO_LEARNED_STATISTICS.upper_bound(_vector(w3=2.0)) == 2.0


def test_counting_by_texts_and_by_entries_agree(statistics: LearnedStatistics) -> None:
    """Either way the statistics are the same, of an empty collection too."""
    stored = [stored_weights(text) for text in _TEXTS]
    entries = (np.concatenate([text.terms for text in stored]), np.concatenate([text.counts for text in stored]))
    counted = statistics.counted(np.array([text.length for text in stored]), *entries)
    for one in (counted, statistics):
        assert one.document_count == 4
        assert one.terms.tolist() == [3, 9, 700]
        assert one.highest.tolist() == [1.75 * 4096, 2.25 * 4096, 3.0 * 4096]
    empty = TermCounts(np.empty(0, np.uint32), np.empty(0, np.uint16), 0)
    assert NO_LEARNED_STATISTICS.counted(np.empty(0, np.int64), empty.terms, empty.counts).document_count == 0
    assert len(NO_LEARNED_STATISTICS.collected([empty]).terms) == 0


def test_statistics_survive_a_file(statistics: LearnedStatistics, tmp_path: Path) -> None:
    """What is read is what was written, and of the same kind."""
    save_statistics(statistics, tmp_path / "terms.npz")
    loaded = load_statistics(tmp_path / "terms.npz")
    assert isinstance(loaded, LearnedStatistics)
    assert loaded.document_count == statistics.document_count
    np.testing.assert_array_equal(loaded.terms, statistics.terms)
    np.testing.assert_array_equal(loaded.highest, statistics.highest)
