"""Traces: the same for a seed, near their law, and right about what a write does to answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from bench._common.traces.events import Add, Ask, Delete, Kind, Law, Trace, Update, What, load, save
from bench._common.traces.figures import figures_of, fit_zipf
from bench._common.traces.judging import Verdict, judge
from bench._common.traces.keys import KeyLaw, zipf_trace
from bench._common.traces.questions import TraceQuestion
from bench._common.traces.writing import Collection
from bench.traces import trace_of
from indexers.types import Document

_LAW = Law(requests=1500, writes=0.04)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of 60 documents with two facts each, a paraphrase for one of the two questions."""
    folder = tmp_path_factory.mktemp("data") / "pumps"
    (folder / "qrels").mkdir(parents=True)
    documents, queries, qrels = [], [], ["query-id\tcorpus-id\tscore"]
    for n in range(60):
        text = f"Pump {n} was built in {1900 + n}. Its maker is Smith{n} Works. It never stops."
        documents.append({"_id": f"d{n}", "title": f"Pump {n}", "text": text})
        asked = {f"{n}a": (f"When was pump {n} built?", [f"{1900 + n}", f"in {1900 + n}"])}
        asked[f"{n}b"] = (f"Who is the maker of pump {n}?", [f"Smith{n} Works"])
        asked[f"para-{n}a"] = (f"in which year did they make pump {n}", [f"{1900 + n}"])
        queries += [{"_id": i, "text": t, "metadata": {"answers": answers}} for i, (t, answers) in asked.items()]
        qrels += [f"{n}a\td{n}\t1", f"{n}b\td{n}\t1"]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join(qrels) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    """One trace for all."""
    return trace_of(folder, _LAW, 7)


def test_trace_is_the_same_for_a_seed(folder: Path, trace: Trace) -> None:
    """Another seed gives another trace."""
    assert trace == trace_of(folder, _LAW, 7)
    assert trace.events != trace_of(folder, _LAW, 8).events


def test_trace_comes_back_from_its_file(trace: Trace, tmp_path: Path) -> None:
    """Saved and loaded it is equal; a file that holds none is refused with a word on what to do."""
    save(trace, tmp_path / "trace.jsonl")
    assert load(tmp_path / "trace.jsonl") == trace
    (tmp_path / "other.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"make it anew with bench\.traces"):
        load(tmp_path / "other.jsonl")


def test_trace_keeps_to_its_law(trace: Trace) -> None:
    """Requests, writes, turns and shares are near what the law says."""
    asks = list(trace.asks())
    assert [ask.number for ask in asks] == list(range(1500))
    assert len(trace.events) - len(asks) == pytest.approx(60, abs=3)
    turns = Counter(ask.conversation for ask in asks)
    assert set(turns.values()) == {1, 2, 3, 4, 5, 6}
    for conversation in (0, 17):
        there = [ask.turn for ask in asks if ask.conversation == conversation]
        assert there == list(range(len(there)))
    figures = figures_of(trace)
    assert 0.8 < figures.zipf < 1.2
    assert figures.kinds["rewrite"] > 0.05
    assert figures.kinds["paraphrase"] > 0.0
    assert figures.kinds["look-alike"] > 0.02
    assert figures.exact_reusable < figures.reusable < 1.0
    assert sum(figures.kinds.values()) == pytest.approx(1.0)


def test_exact_repeats_are_those_whose_text_was_asked_before(trace: Trace) -> None:
    """No other kind has a text that was there, and one text always asks one question."""
    seen: dict[str, str] = {}
    for ask in trace.asks():
        assert (ask.kind is Kind.EXACT) == (ask.text in seen)
        assert seen.setdefault(ask.text, ask.question_id) == ask.question_id


def test_answers_are_in_the_documents_as_they_stand(trace: Trace, folder: Path) -> None:
    """Replayed write by write, each known answer is in its document, and a version changes with what is right."""
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    there = {row["_id"]: row["text"] for row in map(json.loads, lines) if row["_id"] not in trace.held_back}
    right: dict[tuple[str, int], tuple[str, ...]] = {}
    for event in trace.events:
        if isinstance(event, (Update, Add)):
            there[event.document_id] = event.text
        elif isinstance(event, Delete):
            del there[event.document_id]
        else:
            text = " ".join(there.get(one, "") for one in event.documents)
            assert all(answer in text for answer in event.answers)
            assert right.setdefault((event.question_id, event.answer_version), event.answers) == event.answers
            assert bool(event.answers) == (bool(text) and "~" not in event.question_id)
    assert Counter(map(type, trace.events)).keys() == {Ask, Update, Add, Delete}


def test_write_that_keeps_the_facts_changes_no_answer(trace: Trace) -> None:
    """Versions go up for the questions that a write names, and for no others."""
    updates = [event for event in trace.events if isinstance(event, Update)]
    assert {event.what for event in updates} == {What.FACT, What.TOUCHED}
    assert all(bool(event.questions) == (event.what is What.FACT) for event in updates)
    raised = Counter[str]()
    for event in trace.events:
        if isinstance(event, Ask):
            assert event.answer_version == raised[event.question_id]
        else:
            raised.update(event.questions)


def _ask(question_id: str, version: int = 0, answers: tuple[str, ...] = (), documents: tuple[str, ...] = ()) -> Ask:
    return Ask(0, 0, 0, "t", question_id, Kind.FIRST, answers, version, documents)


def test_served_answer_is_right_stale_or_wrong() -> None:
    """The question and the version decide; questions that one document answers alike serve each other."""
    assert judge(_ask("a"), _ask("a")) is Verdict.RIGHT
    assert judge(_ask("a", 1), _ask("a", 0)) is Verdict.STALE
    assert judge(_ask("a"), _ask("b")) is Verdict.WRONG
    assert judge(_ask("a", 0, ("x", "y"), ("d",)), _ask("b", 0, ("y",), ("d",))) is Verdict.RIGHT
    assert judge(_ask("a", 0, ("x",), ("d",)), _ask("b", 0, ("x",), ("e",))) is Verdict.WRONG


@pytest.mark.parametrize("exponent", [0.7, 1.0, 1.3])
def test_fit_finds_the_exponent(exponent: float) -> None:
    """Of keys that were drawn by the law, within a twentieth."""
    counts = Counter(zipf_trace(KeyLaw(requests=60_000, keys=300, exponent=exponent), 1).keys)
    assert fit_zipf(sorted(counts.values(), reverse=True)) == pytest.approx(exponent, abs=0.05)


def test_set_with_too_few_questions_is_refused(tmp_path: Path) -> None:
    """A trace needs something to draw from."""
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "t"}\n', encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "t"}\n', encoding="utf-8")
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="takes ten or more"):
        trace_of(tmp_path, _LAW, 1)


def test_write_leaves_an_answer_alone_whose_words_a_replaced_string_has() -> None:
    """The text still holds it elsewhere, so it is right as before; the answer that was replaced is another one."""
    text = "In the first case of 1964 he refused to pay. A later one was about rules from 1964 and 1968."
    documents = [Document("d1", "", text), Document("d2", "", "It was in 1971 and 1972.")]
    rules = TraceQuestion("q1", "From when are the rules?", (), ("1964 and 1968",), ("d1",))
    case = TraceQuestion("q2", "When was the first case?", (), ("1964",), ("d1",))
    other = TraceQuestion("q3", "When was it?", (), ("1971 and 1972",), ("d2",))
    collection = Collection(documents, [rules, case, other], ())
    update = collection.update("d1", Random(1), touched=False)
    assert update is not None
    assert (update.questions, "1971 and 1972" in update.text) == (("q1",), True)
    assert collection.state(case) == (("1964",), 0)
    assert collection.state(rules) == (("1971 and 1972",), 1)
