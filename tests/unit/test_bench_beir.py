"""Reading sets in BEIR's layout, and splitting their questions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bench._common.beir import Split, read_set, split_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of two documents and three questions, one of which nothing answers."""
    _lines(
        tmp_path / "corpus.jsonl",
        {"_id": "d1", "title": "Pumps", "text": "A pump lifts water.", "metadata": {"year": 2020, "tags": ["a", "b"]}},
        {"_id": "d2", "title": "", "text": 'A valve with a "quote.', "metadata": {"nested": {"no": 1}}},
    )
    _lines(
        tmp_path / "queries.jsonl",
        {"_id": "q1", "text": "what lifts water", "metadata": {"product": "pump"}},
        {"_id": "q2", "text": "valve?"},
        {"_id": "q3", "text": "nothing"},
    )
    (tmp_path / "qrels").mkdir()
    judged = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td2\t1\nq3\td1\t0\ngone\td1\t1\n"
    (tmp_path / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    return tmp_path


def _lines(path: Path, *rows: dict[str, object]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_set_keeps_questions_that_something_answers(folder: Path) -> None:
    """A question with grade 0 only, or without a text, is left out."""
    questions = read_set(folder).questions
    assert [question.query_id for question in questions] == ["q1", "q2"]
    assert questions[0].relevant == {"d1": 2, "d2": 0}
    assert questions[0].metadata == {"product": "pump"}


def test_set_keeps_metadata_that_a_field_can_hold(folder: Path) -> None:
    """Lists become tuples; objects are left out."""
    first, second = read_set(folder).documents
    assert first.metadata == {"year": 2020, "tags": ("a", "b")}
    assert (first.document_id, first.title, second.text) == ("d1", "Pumps", 'A valve with a "quote.')
    assert second.metadata == {}


def test_set_with_other_qrels_says_so_in_its_name(folder: Path) -> None:
    """Two qrels of one folder are two rows of a table."""
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    assert read_set(folder, "dev").name == f"{folder.name}:dev"


def test_split_is_fixed_by_the_id() -> None:
    """The split of an id never moves, so test questions never become train questions."""
    assert {name: split_of(name).value for name in "abcd"} == {"a": "train", "b": "dev", "c": "test", "d": "train"}


def test_splits_have_their_shares() -> None:
    """60, 20 and 20 %, within what chance does to 10,000 ids."""
    counts = Counter(split_of(f"question-{number}") for number in range(10_000))
    assert abs(counts[Split.TRAIN] - 6000) < 200
    assert abs(counts[Split.DEV] - 2000) < 200


def test_part_limits_after_splitting(folder: Path) -> None:
    """A limit counts questions of the split, and 0 is none."""
    source = read_set(folder)
    assert len(source.part(Split.ALL, 1).questions) == 1
    parts = [len(source.part(split).questions) for split in (Split.TRAIN, Split.DEV, Split.TEST)]
    assert sum(parts) == 2
