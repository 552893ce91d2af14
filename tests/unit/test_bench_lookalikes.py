"""The adversarial set: as many of each kind, made with a seed; look-alikes that differ, and rewrites that do not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bench._common.adversarial import hard, quantities, rewording, swaps, turns
from bench._common.adversarial.questions import Asked
from bench._common.adversarial.swaps import Change
from bench._common.lookalikes import (
    HARD_KINDS,
    LOOK_ALIKE_KINDS,
    REWRITE_KINDS,
    Pair,
    hard_look_alikes,
    look_alikes,
    rewrites,
)
from bench.lookalikes import judge, report_of

_QUESTIONS = (
    "What is the maximum size of an upload in Germany?",
    "What's the largest city that was built before {n}00 in India?",
    "Why can't I import more than {n} files from Windows to Linux?",
    "Which command isn't available within {n} days in Module {m}?",
    "how do i convert a list to a dict {n}{m} times",
    "When was the first museum opened in May of 19{n}?",
    "Who won the 2{m}th race in Texas, and why did James Brown not start?",
    "Is it possible to use TensorFlow 2.{n} in the second week?",
    "In {n}1 countries, what is the best food?",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the handed sets, with two small ones in it."""
    texts = [text.format(n=n, m=m) for n in range(11, 31) for m in range(5) for text in _QUESTIONS]
    _write(tmp_path / "squad-sub", texts, {})
    asked = [
        f"How do I close the {word} that I opened?" for word in ("file", "pipe", "window", "socket", "fold", "tab")
    ]
    _write(tmp_path / "docs-faq", asked, {"product": "perl"})
    return tmp_path


def _write(folder: Path, texts: list[str], metadata: dict[str, str]) -> None:
    folder.mkdir()
    rows = [{"_id": f"{n}", "text": text, "metadata": metadata} for n, text in enumerate(dict.fromkeys(texts))]
    rows.append({"_id": "para-1", "text": "Another phrasing of what is there already?", "metadata": metadata})
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "kinds"), [(look_alikes, LOOK_ALIKE_KINDS), (rewrites, REWRITE_KINDS), (hard_look_alikes, HARD_KINDS)]
)
def test_set_is_drawn_with_a_seed_in_about_equal_numbers(
    folder: Path, make: Callable[[Path, int, int], list[Pair]], kinds: dict[str, Change]
) -> None:
    """The same pairs for a seed, as many as asked for, no question twice, every kind there."""
    pairs = make(folder, 90, 1)
    assert pairs == make(folder, 90, 1)
    assert pairs != make(folder, 90, 2)
    assert len(pairs) == 90
    counts = Counter(pair.kind for pair in pairs)
    assert set(counts) == set(kinds)
    assert max(counts.values()) <= 2 * 90 / len(kinds)
    assert all(pair.text_a != pair.text_b for pair in pairs)
    assert not any("Another phrasing" in pair.text_a for pair in pairs)


def test_too_few_questions_and_no_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    """The message says how many there are, and which folder to give."""
    with pytest.raises(ValueError, match=r"only \d+ pairs of 100000"):
        look_alikes(folder, 100_000, 1)
    with pytest.raises(FileNotFoundError, match="squad-sub"):
        rewrites(tmp_path / "nothing", 10, 1)


@pytest.mark.parametrize(
    ("change", "asked", "expected"),
    [
        (turns.negation, "Why can't I just open the file?", r"Why can I open the file\?"),
        (turns.negation, "Who can avail of the loan", r"Who can't avail of the loan"),
        (turns.negation, "Where can I use my card?", r"Where can I not use my card\?"),
        (turns.arguments, "How do I convert from MOBI to EPUB?", r"How do I convert from EPUB to MOBI\?"),
        (turns.arguments, "Is Rust faster than Go?", r"Is Go faster than Rust\?"),
        (turns.arguments, "Why did Rome attack Carthage?", r"Why did Carthage attack Rome\?"),
        (quantities.number, "Where is the homework of week 3?", r"Where is the homework of week (?!3\?)\d+\?"),
        (quantities.unit, "What happens after 30 days?", r"What happens after 30 (hours|weeks)\?"),
        (quantities.version, "How do I install Spark 3.1?", r"How do I install Spark (3\.2|4\.1|3\.10)\?"),
        (quantities.year, "Who won in 1998?", r"Who won in (?!1998)\d{4}\?"),
        (quantities.date, "What happened on June 6?", r"What happened on (June (?!6\?)\d+|(?!June)[A-Z]\w+ 6)\?"),
        (swaps.name, "Who rules in France?", r"Who rules in (?!France)[A-Z]\w+\?"),
        (swaps.name_lower, "Who rules in France?", r"who rules in (?!france)[a-z]+\?"),
        (swaps.direction, "What is due before the start?", r"What is due (after the start|before the stop)\?"),
        (swaps.superlative, "What is the largest city?", r"What is the smallest city\?"),
        (swaps.prefix, "Is a legal move possible here?", r"Is an illegal move possible here\?|.*impossible here\?"),
        (hard.question_word, "Why did it start?", r"(When|Where|How) did it start\?"),
        (hard.qualifier, "How do I read a file in Perl 5?", r"How do I read a file( in Perl 5)?\?"),
        (hard.reworded(swaps.superlative), "What is the largest city?", r"(?i).*what('s| is) the smallest city\b.*"),
        (swaps.ordinal, "What was the 19th century like?", r"What was the (17|18|20|21)(th|st) century like\?"),
    ],
)
def test_look_alike_changes_one_fact(change: Change, asked: str, expected: str) -> None:
    """The partner differs in what its kind says, and in nothing else."""
    texts = change(Asked(asked, "s"), Random(1))
    assert texts is not None
    assert re.fullmatch(expected, texts[1])


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        (turns.arguments, "How do I count from 1 to n?"),  # nobody counts from n to 1 for an answer of its own
        (turns.arguments, "What is the difference between NEFT and RTGS?"),  # the same either way
        (turns.negation, "Why is it not only fast?"),
        (swaps.ordinal, "What does it cost the first time?"),
        (swaps.direction, "What is open source?"),
        (quantities.date, "What may I march for?"),
        (quantities.version, "Is a GPA of 3.6 enough?"),
    ],
)
def test_change_that_would_ask_the_same_is_not_made(change: Change, asked: str) -> None:
    """Where the words only look like a fact, there is no pair."""
    assert change(Asked(asked, "s"), Random(1)) is None


@pytest.mark.parametrize(
    ("change", "asked", "expected"),
    [
        (rewording.contracted, "Where is the file?", "Where's the file?"),
        (rewording.expanded, "Why don't I see it?", "Why do I not see it?"),
        (rewording.expanded, "What if it doesn't work?", "What if it does not work?"),
        (rewording.word_order, "What happened in 1997?", "In 1997, what happened?"),
        (rewording.word_order, "In Vim, how do I leave?", "How do I leave in Vim?"),
        (rewording.title_case, "how do i leave", "How Do I Leave"),
        (rewording.quotes_and_commas, 'What does "eof" mean?', "What does (eof|'eof'|“eof”) mean\\?"),
    ],
)
def test_rewrite_changes_the_form_alone(change: Change, asked: str, expected: str) -> None:
    """The partner asks the same in another form."""
    texts = change(Asked(asked, "s"), Random(1))
    assert texts is not None
    assert texts[1] == expected or re.fullmatch(expected, texts[1])


@pytest.mark.parametrize("change", [rewording.upper_case, rewording.title_case])
def test_case_of_code_is_left_alone(change: Change) -> None:
    """Where case may mean something, it is not changed to capitals."""
    assert change(Asked("What does open(FH) return?", "s"), Random(1)) is None


def test_guard_refuses_the_look_alikes_and_passes_the_rewrites(folder: Path) -> None:
    """The report says so by kind; a rewrite that normalises to the same text is not even compared."""
    alike, same = report_of(judge(look_alikes(folder, 60, 1))), report_of(judge(rewrites(folder, 60, 1)))
    assert alike.passed == 0
    assert alike.passed_by_kind == {}
    assert sum(alike.refused_for.values()) == sum(alike.pairs_by_kind.values()) == alike.pairs == 60
    assert same.passed >= 0.8 * same.pairs
    assert 0 < same.equal <= same.passed
