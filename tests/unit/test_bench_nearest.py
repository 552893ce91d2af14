"""What the measurement of the nearest stored questions compares, and by which figure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bench._common.nearest_ways import Scan, Signs, Vectors, entries_like
from bench.nearest import recall_of_nearest
from encoders.cpu import one_blas_thread


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Keeps products on the calling thread, as the server does."""
    with one_blas_thread():
        yield


def _units(count: int) -> Vectors:
    drawn = np.random.default_rng(1).standard_normal((count, 64)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), dtype=np.float32)


def test_recall_counts_questions_whose_nearest_reaches_the_least() -> None:
    """A question with nothing near enough counts neither way; one whose nearest was not found counts against."""
    found = np.array([0.9, 0.7, -2.0, -2.0])
    best = np.array([0.9, 0.8, 0.8, 0.3], dtype=np.float32)
    assert recall_of_nearest(found, best, 0.5) == 1 / 3
    assert recall_of_nearest(found[3:], best[3:], 0.5) == 1.0


def test_made_up_entries_keep_the_real_ones() -> None:
    """All real questions are among the entries, and all entries have unit length."""
    real = _units(200)
    entries = entries_like(real, 500)
    assert entries.shape == (500, 64)
    assert np.allclose(np.linalg.norm(entries, axis=1), 1.0, atol=1e-5)
    assert np.allclose((real @ entries.T).max(axis=1), 1.0, atol=1e-5)


def test_ways_find_an_entry_by_itself() -> None:
    """A scan and sign bits find the same entry first."""
    entries = _units(400)
    scan, signs = Scan(64, 400), Signs(64, 400)
    for number, entry in enumerate(entries):
        scan.add(number.to_bytes(2, "big"), entry)
        signs.add(number.to_bytes(2, "big"), entry)
    assert scan.search(entries[9], 1, 0.9)[0].key == signs.search(entries[9], 1, 0.9)[0].key == b"\x00\x09"
