"""Logits that are remembered: by everything that shapes them, and for one tenant alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rerank.score_cache import Asker, StoredScores
from retrieval.caching.s3fifo import S3Fifo

ASKER = Asker("acme", "revision", "query")


def test_logits_come_back_to_the_last_bit() -> None:
    """What was put is found, in the order asked for; other passages are unknown."""
    cache = StoredScores(S3Fifo("scores", 100_000, len))
    cache.put(ASKER, ["a", "b"], np.array([1 / 3, -40.0]))
    found = cache.get(ASKER, ["b", "c", "a"])
    np.testing.assert_array_equal(found, [-40.0, np.nan, 1 / 3])


@pytest.mark.parametrize("changed", [{"tenant": "other"}, {"revision": "r2"}, {"query": "query "}])
def test_logit_belongs_to_tenant_model_query_and_passage(changed: dict[str, str]) -> None:
    """Whatever differs, the pair is unknown; parts cannot be shifted from one into the next."""
    cache = StoredScores(S3Fifo("scores", 100_000, len))
    cache.put(ASKER, ["a"], np.array([1.0]))
    assert np.isnan(cache.get(replace(ASKER, **changed), ["a"]))
    assert np.isnan(cache.get(Asker("acme", "revision", "quer"), ["ya"]))


class _Damaged:
    """A store whose values are not what was put."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def get(self, key: bytes) -> bytes | None:
        return self._value

    def put(self, key: bytes, value: bytes) -> None:
        """Keeps nothing."""


@pytest.mark.parametrize(
    "value", [b"", b"short", b"\x00" * 9, np.float64("nan").tobytes(), np.float64("inf").tobytes()]
)
def test_damaged_logit_is_unknown(value: bytes) -> None:
    """A stored value that is no finite logit is computed again."""
    assert np.isnan(StoredScores(_Damaged(value)).get(ASKER, ["a"]))
