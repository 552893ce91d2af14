"""Sentences of passages, made fit to be read by themselves."""

from __future__ import annotations

import pytest

from retrieval.generation.reading import is_whole, sentence_text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Turn the  key\n   to start.", "Turn the key to start."),
        ("- Turn the **key** to *start*.", "Turn the key to start."),
        ("3. [ ] Turn the key.", "Turn the key."),
        ("> Turn the\n> key.", "Turn the key."),
        ("See [the manual](https://x.test/a_b) ![icon](i.png)first.", "See the manual first."),
        ("Call ``start()`` or :meth:`~pump.stop`.", "Call `start()` or `pump.stop`."),
        ("Read `the manual <https://x.test>`_ first.", "Read the manual first."),
        ("Names like __init__ and *args, **kwargs stay.", "Names like __init__ and *args, **kwargs stay."),
        ("Heading\n=======\n\nTurn the key.", "Turn the key."),
        ("The pump was built in 1901.[12] [13]", "The pump was built in 1901."),
        ("As shown [3]_ it works.", "As shown it works."),
        ("Use names[0] or größe[1][2] wherever you like.", "Use `names[0]` or `größe[1][2]` wherever you like."),
        ("Use `names[0]` there.", "Use `names[0]` there."),
        ("A lone ` stands here.", "A lone stands here."),
        ("Run this::", "Run this:"),
        ("ポンプは鍵を回すと始まる。", "ポンプは鍵を回すと始まる。"),
    ],
)
def test_markup_goes_and_words_stay(raw: str, text: str) -> None:
    """Markup is taken off; what could be taken for our citation marks is code or goes; no word is changed."""
    assert sentence_text(raw) == text


@pytest.mark.parametrize(
    "raw",
    [
        "## Starting the pump",
        "```python\nstart()\n```",
        ">>> start()",
        "| key | turns the pump on |",
        "a | b | c",
        "-----",
        "with_stmt ::= 'with' item",
        ".. note:: see below",
        ":param key: the key",
        "x = {1: [2, 3], 4: (5, 6)}; y += x[1] ** 2 % (3 - 1)",
        "42",
        "",
    ],
)
def test_headings_code_and_tables_are_no_sentences(raw: str) -> None:
    """What cannot be read as a sentence gives nothing."""
    assert sentence_text(raw) == ""


@pytest.mark.parametrize(
    ("text", "whole"),
    [("It runs.", True), ('He said "go."', True), ("始まる。", True), ("rest of it.", False), ("A heading", False)],
)
def test_whole_sentences_begin_and_end(text: str, whole: bool) -> None:
    """A whole sentence ends with its mark and does not begin in the middle."""
    assert is_whole(text) is whole
