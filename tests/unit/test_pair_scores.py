"""Logits that are remembered: by everything that shapes them, and for one tenant alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rerank.score_cache import Asker
from retrieval.caching.pair_scores import decode, encode
from tests.fakes.scopes import memory_scores

ASKER = Asker("acme", "revision", "query")


def test_logits_come_back_to_the_last_bit() -> None:
    """What was put is found, in the order asked for; other passages are unknown."""
    cache = memory_scores()
    cache.put(ASKER, ["a", "b"], np.array([1 / 3, -40.0]))
    found = cache.get(ASKER, ["b", "c", "a"])
    np.testing.assert_array_equal(found, [-40.0, np.nan, 1 / 3])
    assert decode(encode(1 / 3)) == 1 / 3


@pytest.mark.parametrize("changed", [{"tenant": "other"}, {"revision": "r2"}, {"query": "query "}])
def test_logit_belongs_to_tenant_model_query_and_passage(changed: dict[str, str]) -> None:
    """Whatever differs, the pair is unknown; parts cannot be shifted from one into the next."""
    cache = memory_scores()
    cache.put(ASKER, ["a"], np.array([1.0]))
    assert np.isnan(cache.get(replace(ASKER, **changed), ["a"]))
    assert np.isnan(cache.get(Asker("acme", "revision", "quer"), ["ya"]))


@pytest.mark.parametrize(
    "value", [b"", b"short", b"\x00" * 9, b"\x01" + np.float64("nan").tobytes(), b"\x01" + np.float64("inf").tobytes()]
)
def test_damaged_logit_is_unknown(value: bytes) -> None:
    """A stored value that is no finite logit of this format is computed again (case RED-06)."""
    assert decode(value) is None
