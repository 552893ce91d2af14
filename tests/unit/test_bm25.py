"""BM25 as a dot product of two sparse vectors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from encoders.bm25 import K1, B, Bm25Statistics, collect_statistics, query_vector, upper_bound
from encoders.statistics_file import load_statistics, save_statistics
from encoders.term_statistics import document_vector
from encoders.terms import count_terms
from encoders.types import SparseVector

_TEXTS = ("pump seal pump", "valve torque", "pump valve torque table of the pump room", "")


@pytest.fixture
def statistics() -> Bm25Statistics:
    """Counts four small texts."""
    return collect_statistics(map(count_terms, _TEXTS))


def _dot(query: SparseVector, document: SparseVector) -> float:
    _, left, right = np.intersect1d(query.indices, document.indices, return_indices=True)
    return float(query.values[left] @ document.values[right])


def test_dot_product_is_the_formula(statistics: Bm25Statistics) -> None:
    """Robertson and Zaragoza, 2009: sum of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))."""
    score = _dot(query_vector(count_terms("pumps"), statistics), document_vector(count_terms(_TEXTS[0]), statistics))
    idf = math.log(1.0 + (4 - 2 + 0.5) / (2 + 0.5))
    average = (3 + 2 + 6 + 0) / 4
    expected = idf * 2 * (K1 + 1) / (2 + K1 * (1 - B + B * 3 / average))
    assert score == pytest.approx(expected, rel=1e-6)


def test_score_stays_below_the_upper_bound(statistics: Bm25Statistics) -> None:
    """However often a document repeats the query's words."""
    query = query_vector(count_terms("pump valve unheard"), statistics)
    flood = document_vector(count_terms("pump valve unheard " * 5_000), statistics)
    assert 0.0 < _dot(query, flood) < upper_bound(query)


def test_idf_is_never_negative_and_largest_for_unseen_terms(statistics: Bm25Statistics) -> None:
    """A word in every text still counts for nothing less than nothing."""
    idf = statistics.idf(count_terms("pump table unheard").terms)
    assert np.all(idf >= 0.0)
    assert statistics.idf(count_terms("unheard").terms)[0] == idf.max()


def test_repeating_a_word_in_a_question_changes_nothing(statistics: Bm25Statistics) -> None:
    """A query vector holds each distinct term once."""
    one, many = (query_vector(count_terms(text), statistics) for text in ("pump seal", "pump pump seal pump"))
    np.testing.assert_array_equal(one.indices, many.indices)
    np.testing.assert_array_equal(one.values, many.values)


def test_statistics_survive_the_disk(statistics: Bm25Statistics, tmp_path: Path) -> None:
    """What was saved is what is loaded."""
    save_statistics(statistics, tmp_path / "bm25.npz")
    loaded = load_statistics(tmp_path / "bm25.npz")
    assert (loaded.document_count, loaded.average_length) == (statistics.document_count, statistics.average_length)
    np.testing.assert_array_equal(loaded.terms, statistics.terms)
    np.testing.assert_array_equal(loaded.document_frequencies, statistics.document_frequencies)


def test_empty_collection_has_statistics() -> None:
    """Nothing indexed yet: no term is known, and vectors can still be made."""
    empty = collect_statistics([])
    assert (empty.document_count, empty.average_length, len(empty.terms)) == (0, 0.0, 0)
    assert np.all(np.isfinite(query_vector(count_terms("pump"), empty).values))
    assert np.all(np.isfinite(document_vector(count_terms("pump"), empty).values))
