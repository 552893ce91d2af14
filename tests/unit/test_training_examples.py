"""What there is to learn from: sets, pair files, headings, and which queries of them train."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench._common.beir import split_of as bench_split_of
from rerank.training.errors import TrainingDataInvalid
from rerank.training.examples import Example, SourceText, read_beir, read_pairs, read_texts
from rerank.training.headings import Conditions, heading_of, heading_set
from rerank.training.splits import Split, part, split_of

_LONG = "The seal of the pump is pressed in. " * 10


def _write_set(folder: Path, qrels: str) -> Path:
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "d0", "title": "Pump", "text": "seal"}, {"_id": "d1", "text": "soup"}]
    queries = [{"_id": "q0", "text": "pump seal"}, {"_id": "q1", "text": "cats"}]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}", encoding="utf-8")
    return folder


def test_beir_set_gives_texts_and_graded_queries(tmp_path: Path) -> None:
    """Grades of 0 and queries that nobody wrote are left out."""
    found = read_beir(_write_set(tmp_path / "small", "q0\td0\t2\nq0\td1\t0\nq1\td1\t0\nq9\td0\t1\n"))
    assert found.name == "small"
    assert found.texts == (SourceText("d0", "Pump", "seal"), SourceText("d1", "", "soup"))
    assert found.examples == (Example("q0", "pump seal", {"d0": 2}),)


@pytest.mark.parametrize("qrels", ["q1\td1\t0\n", "q0\td0\tyes\n", "q0\n"])
def test_beir_set_without_usable_qrels_is_refused(tmp_path: Path, qrels: str) -> None:
    """A set that could teach nothing, or whose grades cannot be read, is an error and not an empty run."""
    with pytest.raises(TrainingDataInvalid):
        read_beir(_write_set(tmp_path / "small", qrels))


def test_pair_file_merges_equal_queries_and_passages(tmp_path: Path) -> None:
    """Equal passages are one text, so that none is a negative of its own query."""
    rows = [("a", "x"), ("a", "y"), ("b", "x")]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps({"query": q, "passage": p}) + "\n" for q, p in rows), encoding="utf-8")
    found = read_pairs(path)
    assert [text.text for text in found.texts] == ["x", "y"]
    assert [dict(example.relevant) for example in found.examples] == [{"t0": 1, "t1": 1}, {"t0": 1}]


@pytest.mark.parametrize("line", ["", "not json", '{"query": "a"}', '["a", "b"]', '{"query": "a", "passage": 3}'])
def test_pair_file_that_cannot_be_read_names_its_fault(tmp_path: Path, line: str) -> None:
    """An empty file, and a line that is no pair, are refused with the file's name."""
    path = tmp_path / "own.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(TrainingDataInvalid, match=r"own\.jsonl"):
        read_pairs(path)


def test_texts_are_read_from_gzip_too(tmp_path: Path) -> None:
    """A large corpus stays compressed; its metadata comes along."""
    path = tmp_path / "corpus.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write('{"_id": "d", "title": null, "text": "seal", "metadata": {"product": "pump"}}\n')
    assert list(read_texts(path)) == [SourceText("d", "", "seal", {"product": "pump"})]


def test_headings_become_queries_for_their_sections() -> None:
    """The last heading, without its number, asks for the text, from which the title is gone."""
    texts = [
        SourceText("a", "Pumps > 4.2. Changing a worn seal", _LONG),
        SourceText("b", "Pumps > Examples", _LONG),
        SourceText("c", "Cleaning the long pipe", "too short"),
    ]
    found = heading_set("manual", texts)
    assert found.examples == (Example("heading:a", "Changing a worn seal", {"a": 1}),)
    assert [(text.text_id, text.title) for text in found.texts] == [("a", ""), ("b", "")]


def test_headings_of_several_sections_ask_for_none() -> None:
    """A heading that two sections share would make one of them a wrong negative."""
    texts = [SourceText(name, "Changing a worn seal", _LONG) for name in "ab"]
    assert not heading_set("manual", texts).examples


def test_conditions_choose_documents_by_metadata() -> None:
    """Only what has a kept value takes part, and nothing that has a dropped one."""
    conditions = Conditions({"licence": frozenset({"MIT"})}, {"kind": frozenset({"faq"})})
    admitted = [
        conditions.admit(SourceText("a", "", "", metadata))
        for metadata in ({"licence": "MIT"}, {"licence": "MIT", "kind": "faq"}, {"licence": "GPL"}, {})
    ]
    assert admitted == [True, False, False, False]


@pytest.mark.parametrize(
    ("title", "heading"),
    [("A > B", "B"), ("20.4.1. Memory", "Memory"), ("Chapter 3. Pumps", "Pumps"), ("A.2 Seals", "Seals"), ("", "")],
)
def test_heading_of_a_title_has_no_number(title: str, heading: str) -> None:
    """Numbers of sections are no words that anybody asks for."""
    assert heading_of(title) == heading


def test_splits_are_those_of_the_benchmarks() -> None:
    """What trains here is never what the benchmarks call dev or test."""
    ids = [f"q{number}" for number in range(500)]
    assert [split_of(one).value for one in ids] == [bench_split_of(one).value for one in ids]
    shares = [sum(split_of(one) is split for one in ids) / len(ids) for split in Split]
    assert shares == pytest.approx([0.6, 0.2, 0.2], abs=0.06)


def test_part_of_a_split_does_not_depend_on_order() -> None:
    """A limited part is drawn by a hash: shuffling the file changes nothing, raising the limit only adds."""
    examples = [Example(f"q{number}", "", {"d": 1}) for number in range(100)]
    few = part(examples, Split.DEV, 5)
    assert few == part(examples[::-1], Split.DEV, 5) == part(examples, Split.DEV, 9)[:5]
    assert len(part(examples, Split.DEV)) == sum(split_of(one.query_id) is Split.DEV for one in examples)
