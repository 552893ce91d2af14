"""Random additions, replacements and removals against a dictionary that is scanned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval.answers.nearest import NearestQuestions

DIM = 200
_RANDOM = np.random.default_rng(11)
_CENTERS = _RANDOM.standard_normal((6, DIM))
_POOL = _CENTERS[np.arange(60) % 6] + 0.5 * _RANDOM.standard_normal((60, DIM))
POOL = np.asarray(_POOL / np.linalg.norm(_POOL, axis=1, keepdims=True), dtype=np.float32)

places = st.integers(0, len(POOL) - 1)
additions = st.tuples(st.just("add"), st.integers(0, 40), places)
removals = st.tuples(st.just("remove"), st.integers(0, 40), places)
searches = st.tuples(st.just("search"), st.integers(1, 6), places)


@given(steps=st.lists(st.one_of(additions, removals, searches), max_size=120), least=st.floats(-1.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_any_order_of_calls_finds_what_a_scan_finds(steps: list[tuple[str, int, int]], least: float) -> None:
    """After any additions, replacements and removals, the best are those of a scan over what is there."""
    nearest = NearestQuestions(DIM)
    stored: dict[bytes, NDArray[np.float32]] = {}
    for action, number, place in steps:
        key = number.to_bytes(2, "big")
        if action == "add":
            nearest.add(key, POOL[place])
            stored[key] = POOL[place]
        elif action == "remove":
            assert nearest.remove(key) == (stored.pop(key, None) is not None)
        else:
            _compare(nearest, stored, POOL[place], number, least)
        assert len(nearest) == len(stored)


def _compare(
    nearest: NearestQuestions,
    stored: dict[bytes, NDArray[np.float32]],
    vector: NDArray[np.float32],
    limit: int,
    least: float,
) -> None:
    cosines = {key: float(np.vecdot(one, vector)) for key, one in stored.items()}
    found = nearest.search(vector, limit, least)
    keys = [neighbour.key for neighbour in found]
    assert [neighbour.similarity for neighbour in found] == pytest.approx([cosines[key] for key in keys], abs=1e-6)
    assert all(cosines[key] >= least - 1e-5 for key in keys)
    assert found == sorted(found, key=lambda neighbour: (-neighbour.similarity, neighbour.key))
    surely = sum(cosine >= least + 1e-5 for cosine in cosines.values())
    assert len(found) >= min(limit, surely)
    left_out = [cosine for key, cosine in cosines.items() if key not in keys and cosine >= least + 1e-5]
    assert not left_out or max(left_out) <= found[-1].similarity + 1e-5
