"""Sentence splitting."""

from __future__ import annotations

import pytest

from indexers.sentences import sentence_spans


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One here. Two there! Three?", ["One here.", "Two there!", "Three?"]),
        ("Use e.g. Redis for it. Done.", ["Use e.g. Redis for it.", "Done."]),
        ("Dr. Ito and J. R. Smith agree. So do we.", ["Dr. Ito and J. R. Smith agree.", "So do we."]),
        ("It is 3.5 mm, see no. 7 there. He said no. Then he left.", None),
        ('She said "Stop!" Then she left.', ['She said "Stop!"', "Then she left."]),
        ("Set `a. B` first. Then go.", ["Set `a. B` first.", "Then go."]),
        ("泵已停。请检查。好的", ["泵已停。", "请检查。", "好的"]),
        ("wrapped\nprose here. Next\none.", ["wrapped\nprose here.", "Next\none."]),
        ("Wait... what is it?", ["Wait... what is it?"]),
        ("first para\n\nsecond para", ["first para", "second para"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str] | None) -> None:
    """Abbreviations, initials, decimals, quotes and inline code end no sentence; full stops and blank lines do."""
    if expected is None:
        expected = ["It is 3.5 mm, see no. 7 there.", "He said no.", "Then he left."]
    assert _sentences(text) == expected


def test_list_items_and_table_rows_are_sentences_of_their_own() -> None:
    """A list item, a numbered item and a table row each start a new sentence."""
    text = "Steps:\n- drain it\n- fill it\n1. First. Then.\n2. Second\n| V7 | 40 |\n| V8 | 55 |"
    assert _sentences(text) == [
        "Steps:",
        "- drain it",
        "- fill it",
        "1. First.",
        "Then.",
        "2. Second",
        "| V7 | 40 |",
        "| V8 | 55 |",
    ]


def test_fenced_code_is_one_sentence_even_when_it_is_never_closed() -> None:
    """Full stops in code end nothing, and an unclosed fence keeps the rest of the text."""
    assert _sentences("Run:\n```sh\necho a. B\n```\nDone.") == ["Run:", "```sh\necho a. B\n```", "Done."]
    assert _sentences("Run:\n~~~\necho a. B\nMore. Text") == ["Run:", "~~~\necho a. B\nMore. Text"]


def test_a_heading_line_stands_alone() -> None:
    """The line after a heading does not continue it."""
    assert _sentences("# Pumps\nThey pump.\n## Seals\nThey seal.") == [
        "# Pumps",
        "They pump.",
        "## Seals",
        "They seal.",
    ]


def test_a_text_without_visible_characters_has_no_sentences() -> None:
    """Space alone gives no spans."""
    assert sentence_spans(" \n\t\f ") == []
