"""The judge of the simulation: what is old, somebody else's or inconsistent is found, and what may be served is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench._common.consistency.engines import UNKNOWN, mark_of, said_in
from bench._common.consistency.facts import TOPICS, WORDINGS, fact_document, statement, topic_of
from bench._common.consistency.judge import Judge, Reply
from bench._common.consistency.truth import Asked, Truth, Version
from indexers.types import CollectionKey, Document, Epoch, Passage
from retrieval.clock import Ledger
from retrieval.reuse import EvidenceReport, Reuse, ReuseReport
from retrieval.settings import Settings
from retrieval.speech import FinishReason, Usage
from retrieval.thresholds import Overrides, resolve
from retrieval.types import AnswerCitation, Citation, Completed, Context, Hit, Retrieved, RetrieveRequest, ScoreParts

OURS, THEIRS = CollectionKey("acme", "docs"), CollectionKey("bell", "docs")
TOPIC = TOPICS[0]
OLD, NEW = (fact_document("sheet", TOPIC, "north", value, value + 1) for value in (10, 20))
OTHER = fact_document("sheet", TOPIC, "north", 30, 31)
LEDGER = Ledger(stages=(), total_ns=0)
EQUAL = ReuseReport(Reuse.EQUAL, key="k", tier="memory", similarity=1.0, evidence=EvidenceReport(1, 1, 1))
MADE = ReuseReport(reason="unknown", key="k", stored=True)


@pytest.fixture
def truth() -> Truth:
    """OLD from 10 on, NEW written from 100 to 110; the other tenant's from 10 on."""
    made = Truth()
    for key, document, begun_ns, ended_ns in ((OURS, OLD, 10, 20), (THEIRS, OTHER, 10, 20), (OURS, NEW, 100, 110)):
        made.begin(key, "sheet", Version(document, TOPIC, begun_ns))
        made.acknowledge(key, "sheet", ended_ns)
    return made


def reply(
    document: Document, begun_ns: float, ended_ns: float, report: ReuseReport = MADE, mark: str = "\ufeff"
) -> Reply:
    """Returns a reply that quotes the document, as it would be to a question asked in that time."""
    text = document.text
    passage = Passage("c", document.document_id, document.title, (), text, 0, len(text), 0, 0, document.metadata)
    context = Context(text, 1, 100, "words", (Citation(1, passage, ("c",)),))
    said = f"{statement(document.title, text)}{mark} [1]"
    thresholds = resolve(Settings(), Overrides(rerank=False))
    request = RetrieveRequest("r", OURS.tenant, OURS.collection, TOPIC.question(0), None, thresholds)
    cited = (AnswerCitation(1, len(said) - 3, len(said), "sheet"),)
    completed = Completed(FinishReason.STOP, Usage(), cited, 0, LEDGER, "facts", "facts", report)
    retrieved = Retrieved("r", (Hit(passage, 1.0, ScoreParts()),), context, LEDGER, Epoch(1, 1))
    return Reply(request, Asked(OURS, None, begun_ns, ended_ns), retrieved, said, completed)


def violations(truth: Truth, *replies: Reply) -> set[str]:
    """Returns the kinds of what the judge finds wrong."""
    judge = Judge(truth)
    for one in replies:
        judge.judge(one)
    return set(judge.violations)


@pytest.mark.parametrize(
    ("document", "begun_ns", "ended_ns", "wrong"),
    [
        (OLD, 30, 40, set()),
        (OLD, 105, 200, set()),  # asked before the change was acknowledged
        (NEW, 90, 101, set()),  # ended after it was begun
        (NEW, 30, 40, {"stale"}),  # not written yet
        (OLD, 111, 120, {"stale"}),
        (OTHER, 30, 40, {"cross-tenant"}),
        (replace(OTHER, document_id="nobody"), 30, 40, {"cross-tenant", "citation"}),
        (fact_document("sheet", TOPIC, "north", 77, 78), 30, 40, {"wrong"}),
    ],
)
def test_judge_knows_what_was_there_when(
    truth: Truth, document: Document, begun_ns: float, ended_ns: float, wrong: set[str]
) -> None:
    """A write may be seen from its beginning, and must be seen from its acknowledgement."""
    assert violations(truth, reply(document, begun_ns, ended_ns)) == wrong


def test_judge_finds_that_something_is_not_known_which_is_there(truth: Truth) -> None:
    """An answer that says nothing is old when a document on the topic is there."""
    one = reply(OLD, 30, 40)
    nothing = replace(one, answer=f"{UNKNOWN}\ufeff [1]", retrieved=replace(one.retrieved, hits=()))
    assert "stale" in violations(truth, nothing)


def test_judge_asks_where_an_answer_came_from(truth: Truth) -> None:
    """A served answer was made for this partition and question before, and was kept."""
    made, served = reply(OLD, 30, 40), reply(OLD, 50, 60, EQUAL)
    assert violations(truth, made, served) == set()
    assert violations(truth, served) == {"origin"}
    kept_not = replace(MADE, stored=False)
    assert violations(truth, reply(OLD, 30, 40, kept_not), served) == {"origin"}
    elsewhere = replace(served, request=replace(served.request, data_policy="secret"))
    assert violations(truth, made, elsewhere) == {"cross-partition"}
    reworded = replace(served, request=replace(served.request, query=TOPIC.question(2)))
    assert violations(truth, made, reworded) == {"origin"}


def test_judge_checks_gates_and_citations(truth: Truth) -> None:
    """A hit whose evidence does not hold, and a mark that points elsewhere, are violations."""
    made = reply(OLD, 30, 40)
    unproven = replace(EQUAL, evidence=EvidenceReport(1, 0, 0))
    assert violations(truth, made, reply(OLD, 50, 60, unproven)) == {"gates"}
    trusted = replace(EQUAL, evidence=EvidenceReport(trusted=True))
    assert violations(truth, made, reply(OLD, 50, 60, trusted)) == {"gates"}
    assert made.completed is not None
    [mark] = made.completed.citations
    moved = replace(made, completed=replace(made.completed, citations=(replace(mark, start=0),)))
    assert violations(truth, moved) == {"citation"}


def test_judge_allows_for_trust_as_much_as_the_settings_do(truth: Truth) -> None:
    """An answer that was trusted may be out of date by `trust_ms`, counted from when it was asked for."""
    made = reply(OLD, 30, 40)
    trusted = reply(OLD, 2_000_000, 2_000_001, replace(EQUAL, evidence=EvidenceReport(trusted=True)))
    assert violations(truth, made, replace(trusted, trust_ms=2)) == set()
    assert violations(truth, made, replace(trusted, trust_ms=1)) == {"stale"}


def test_questions_and_answers_tell_what_they_are_about() -> None:
    """Each wording is read back, and a mark is seen by nobody but the judge."""
    for topic in TOPICS:
        assert {topic_of(topic.question(number)) for number in range(len(WORDINGS))} == {topic}
    assert mark_of("It is so.\ufeff\u200b\ufeff [1]") == 5
    assert mark_of("It is so. [1]") is None
    assert said_in("It is so.\ufeff\u200b\ufeff [1]") == "It is so."
