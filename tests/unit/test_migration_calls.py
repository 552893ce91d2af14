"""Migrations on the wire and on the command line: bounds, labelled questions, what is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.v1 import migrations_pb2
from indexers.types import Candidates
from retrieval.cli.exits import WrongUse
from retrieval.cli.migrate import labelled_questions
from retrieval.errors import InvalidRequest, MigrationRefused
from retrieval.migrating.checking import judge, share_found
from retrieval.migrating.types import Bounds, CheckReport, LabelledQuestion, MigrationState, Step, Wanted
from retrieval.server.convert.migrations import migration_to_pb, wanted_from_pb

Request = migrations_pb2.MigrateCollectionRequest
Question = migrations_pb2.LabelledQuestion


def test_absent_bounds_are_the_defaults_and_zero_is_zero() -> None:
    """A bound of 0 is one, not an absent one."""
    assert wanted_from_pb(Request(collection="docs", model="m")) == Wanted("m")
    asked = Request(collection="docs", min_recall=0.0, max_ndcg_loss=0.0, token_vectors=False)
    assert wanted_from_pb(asked) == Wanted("", False, False, Bounds(0.0, 0.0))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Request(min_recall=1.5), "min_recall"),
        (Request(max_ndcg_loss=-0.1), "max_ndcg_loss"),
        (Request(min_recall=float("nan")), "min_recall"),
        (Request(back=True, model="m"), "model"),
        (Request(questions=[Question(query="", relevance={"d": 1})]), "questions[0].query"),
        (Request(questions=[Question(query="q", relevance={"d": 1}), Question(query="q")]), "questions[1].relevance"),
        (Request(questions=[Question(query="q", relevance={"d": 0})]), "questions[0].relevance"),
    ],
)
def test_what_is_out_of_bounds_is_named(request_: Request, field: str) -> None:
    """The error names the field as the message has it."""
    with pytest.raises(InvalidRequest) as caught:
        wanted_from_pb(request_)
    assert caught.value.field == field


def test_labelled_questions_are_read_with_lists_and_grades(tmp_path: Path) -> None:
    """Blank lines are passed over; a line that is not so is named."""
    file = tmp_path / "labelled.jsonl"
    file.write_text('{"query": "a", "relevant": ["x", "y"]}\n\n{"query": "b", "relevant": {"z": 2}}\n', "utf-8")
    found = wanted_from_pb(Request(questions=labelled_questions(file))).questions
    assert found == (LabelledQuestion("a", {"x": 1, "y": 1}), LabelledQuestion("b", {"z": 2}))
    for line in (
        '{"query": "a"}',
        '["a"]',
        "{",
        '{"query": 1, "relevant": ["x"]}',
        '{"query": "a", "relevant": {"x": "y"}}',
    ):
        file.write_text('{"query": "a", "relevant": ["x"]}\n' + line + "\n", "utf-8")
        with pytest.raises(WrongUse, match=r"labelled\.jsonl:2"):
            labelled_questions(file)
    for nothing in ("", "\n \n"):
        file.write_text(nothing, "utf-8")
        with pytest.raises(WrongUse, match="no labelled question"):
            labelled_questions(file)
    file.write_text('{"query": "a\u2028b", "relevant": ["x"]}\n' + "[" * 100_000, "utf-8")
    with pytest.raises(WrongUse, match=r"labelled\.jsonl:2"):
        labelled_questions(file)
    with pytest.raises(WrongUse, match="nowhere"):
        labelled_questions(tmp_path / "nowhere.jsonl")


def test_judgement_names_figure_and_bound() -> None:
    """What is worse than it may be does not serve; what cannot be compared is not held against it."""
    judge("docs", CheckReport(0.95, 100, 0.80, 0.79), Bounds(0.95, 0.02))
    judge("docs", CheckReport(1.0, 100, None, 0.1), Bounds())
    with pytest.raises(MigrationRefused, match=r"0\.940.*0\.95 is the least"):
        judge("docs", CheckReport(0.94, 100), Bounds())
    with pytest.raises(MigrationRefused, match=r"from 0\.800 to 0\.700"):
        judge("docs", CheckReport(1.0, 100, 0.8, 0.7), Bounds())


def test_recall_counts_what_is_as_near_as_the_last_one() -> None:
    """Equal passages may stand for each other; one that is missing counts."""
    exact = _candidates([0.9, 0.8, 0.5, 0.5])
    assert share_found(exact, _candidates([0.9, 0.8, 0.5, 0.5])) == 1.0
    assert share_found(exact, _candidates([0.9, 0.5, 0.5, 0.4])) == 0.75
    assert share_found(_candidates([]), _candidates([])) == 1.0


def test_state_becomes_a_message_with_its_reason() -> None:
    """Figures that were not taken are absent."""
    state = MigrationState("m@1", Step.FAILED, 10, 8, 7, 1.5, CheckReport(0.9, 3), MigrationRefused("docs", "no"))
    message = migration_to_pb(state)
    assert (message.step, message.documents_done, message.encoded) == (migrations_pb2.MIGRATION_STEP_FAILED, 8, 7)
    assert message.duration.ToMilliseconds() == 1_500
    assert "does not move: no" in message.reason
    assert (message.check.recall, message.check.HasField("ndcg_after")) == (0.9, False)


def _candidates(scores: list[float]) -> Candidates:
    count = len(scores)
    nothing, ranks = np.full(count, np.nan, np.float32), np.arange(count, dtype=np.int32)
    ids = tuple(map(str, range(count)))
    return Candidates(ids, np.array(scores, dtype=np.float32), nothing, ranks, np.full(count, -1, np.int32))
