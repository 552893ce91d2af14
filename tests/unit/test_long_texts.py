"""Counting the tokens of long texts: as much of them as the count is for."""

from __future__ import annotations

import pytest

from retrieval.assembly.long_texts import count_up_to, estimated_count
from tests.fakes.counters import WordCounter

SHORT, LONG = "word " * 500, "word " * 100_000


def test_count_up_to_is_exact_within_the_budget() -> None:
    """What fits is counted as it is, but for a token where a piece was cut from the next."""
    assert count_up_to(SHORT, 500, WordCounter()) == 500
    assert 100_000 <= count_up_to(LONG, 200_000, WordCounter()) <= 100_000 + len(LONG) // 4096 + 1
    assert count_up_to("", 0, WordCounter()) == 0


@pytest.mark.parametrize("enough", [-5, 0, 10, 1000, 40_000])
def test_count_up_to_stops_past_the_budget(enough: int) -> None:
    """Whatever is more than enough says so, and is read no further than that takes."""
    counter = WordCounter()
    assert count_up_to(LONG, enough, counter) > enough
    assert counter.counted_chars <= max(0, enough) * 5 + 4096


def test_estimated_count_is_exact_for_what_is_short() -> None:
    """A text of a few pieces is counted whole."""
    assert estimated_count(SHORT, WordCounter()) == 500
    assert estimated_count("", WordCounter()) == 0


def test_estimated_count_takes_a_long_text_to_be_as_dense_as_its_densest_sample() -> None:
    """The beginning and the end are always looked at, so what is dense there makes all of it count as dense."""
    counter = WordCounter()
    assert 100_000 <= estimated_count(LONG, counter) <= 101_000
    assert counter.counted_chars < 10_000
    assert estimated_count(LONG + "." * 4096, WordCounter()) == len(LONG) + 4096
