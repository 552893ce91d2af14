"""How a text becomes a bag of hashed stems."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from encoders.terms import STOP_WORDS, count_terms, term_id


def _terms(text: str) -> set[int]:
    return set(count_terms(text).terms.tolist())


def test_term_id_is_the_same_on_every_platform() -> None:
    """Ids are stored, so a changed hash would silently empty every keyword search."""
    assert term_id("valv") == 1430086757
    assert term_id("") == 634351890


def test_terms_of_inflected_words_are_one() -> None:
    """Plural, tense and case do not matter."""
    assert _terms("Valves") == _terms("valve") == {term_id("valv")}
    assert count_terms("connect Connected CONNECTING").counts.tolist() == [3]


def test_terms_leave_stop_words_out_of_the_length() -> None:
    """The length counts what the terms count."""
    counted = count_terms("The pump is in the room")
    assert counted.length == 2
    assert int(counted.counts.sum()) == 2


@pytest.mark.parametrize("text", ["", " \n\t", "?!…", "the of and", "\u200b\ufeff", "\ud800"])
def test_terms_of_a_text_without_words_are_empty(text: str) -> None:
    """A text without words is an empty bag, not an error."""
    counted = count_terms(text)
    assert len(counted.terms) == len(counted.counts) == counted.length == 0


def test_terms_split_identifiers_into_their_words() -> None:
    """A module is found by its full name and by each part of it."""
    assert _terms("mod_ssl") == {term_id("mod"), term_id("ssl")}
    assert _terms("std::vector.size()") == {term_id("std"), term_id("vector"), term_id("size")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("\uff50\uff55\uff4d\uff50", "pump"),
        ("ﬁle", "file"),
        ("caf\u00e9", "cafe\u0301"),
        ("co\u00adoperate", "cooperate"),
        ("pump\u200bseal", "pump seal"),
        ("pump\u00a0seal", "pump seal"),
        ("ｶﾀｶﾅ", "カタカナ"),
    ],
)
def test_terms_ignore_how_a_character_is_written(one: str, other: str) -> None:
    """Compatibility forms, composition, case and invisible characters do not separate equal words."""
    assert _terms(one) == _terms(other)


def test_terms_of_unspaced_scripts_are_pairs_of_characters() -> None:
    """A word is found inside a sentence that is written without spaces."""
    assert _terms("東京") == {term_id("東京")}
    assert _terms("東京") <= _terms("私は東京都に住んでいます")
    assert _terms("水") == {term_id("水")}
    assert count_terms("東京 pump").length == 2


def test_terms_keep_words_of_indic_scripts_whole() -> None:
    """Vowel signs belong to the word that they are in."""
    assert count_terms("हिन्दी भाषा").length == 2


def test_counts_saturate_instead_of_wrapping() -> None:
    """A word repeated more often than 16 bits can say counts as the most that they can."""
    counted = count_terms("pump " * 70_000)
    assert counted.counts.tolist() == [65_535]
    assert counted.length == 70_000


def test_terms_of_a_very_long_run_are_matched_whole() -> None:
    """Keys and encoded data are neither stemmed nor remembered, and do not fail."""
    run = "ab12" * 50_000
    assert _terms(run) == {term_id(run)}


def test_stop_words_are_lower_case_words() -> None:
    """Every stop word can occur: the words of a text are case-folded runs of letters."""
    assert all(word == word.lower() and word.isalpha() for word in STOP_WORDS)


def test_terms_are_the_same_from_several_threads() -> None:
    """The stemmer and the memory of words are shared by all threads."""
    texts = [f"running pumps number{i % 50} connected valves {i}" for i in range(800)]
    alone = [count_terms(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(count_terms, texts))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.terms, other.terms)
        np.testing.assert_array_equal(one.counts, other.counts)
