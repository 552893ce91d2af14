"""What is found out about documents: their language, and which say nearly the same."""

from __future__ import annotations

import pytest

from indexers.duplicates import NearDuplicates
from indexers.language import detect_language, with_languages
from indexers.types import Document

WORDS = [f"word{number}" for number in range(20)]
TEXT = " ".join(WORDS * 6)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Pumpe bewegt das Wasser durch das lange Rohr in den Behälter.", "de"),
        ("The pump moves the water through the long pipe into the tank.", "en"),
        ("La pompe déplace l'eau à travers le long tuyau dans le réservoir.", "fr"),
        ("Насос двигает воду по длинной трубе в резервуар.", "ru"),  # noqa: RUF001
        ("ポンプは長いパイプを通してタンクに水を送ります。とても便利です。", "ja"),
        ("x = 1", ""),
        ("12345 67890 12345 67890", ""),
    ],
)
def test_language_is_detected(text: str, language: str) -> None:
    """Sentences are told apart, and what is no language has none."""
    assert detect_language(text) == language


def test_language_that_a_document_says_itself_stays() -> None:
    """A source knows better than a detector."""
    text = "The pump moves the water through the long pipe into the tank."
    given, told = with_languages([Document("a", "", text, metadata={"language": "la"}), Document("b", "", text)])
    assert (given.metadata, told.metadata) == ({"language": "la"}, {"language": "en"})


def test_near_duplicates_are_found_and_others_not() -> None:
    """A text with one word changed is similar to the first, another text is not."""
    seen = NearDuplicates(0.8)
    assert seen.find("a", TEXT)[0] is None
    assert seen.find("other", " ".join(f"{word}{number}" for number, word in enumerate(WORDS * 6)))[0] is None
    similar, _ = seen.find("b", f"{TEXT} end")
    assert similar is not None
    assert similar.document_id == "a"
    assert similar.similarity > 0.9


def test_document_that_changed_is_not_its_own_duplicate() -> None:
    """A new version replaces the old one's signature."""
    seen = NearDuplicates(0.8)
    seen.find("a", TEXT)
    assert seen.find("a", f"{TEXT} end")[0] is None
    similar, _ = seen.find("b", f"{TEXT} end")
    assert similar is not None
    assert similar.similarity == 1.0


def test_signatures_last_from_one_run_to_the_next() -> None:
    """A document of an earlier run is found by its stored signature; one that cannot be read is passed over."""
    _, signature = NearDuplicates(0.8).find("a", TEXT)
    similar, _ = NearDuplicates(0.8, [("a", signature), ("broken", b"no signature")]).find("b", TEXT)
    assert similar is not None
    assert similar.document_id == "a"


def test_short_texts_have_no_duplicates() -> None:
    """Texts of few words are alike too easily to say anything."""
    seen = NearDuplicates(0.8)
    assert seen.find("a", "yes it does") == (None, b"")
    assert seen.find("b", "yes it does") == (None, b"")
