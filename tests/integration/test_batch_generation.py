"""A file of questions is answered through a server, and gone on with where it was broken off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.v1 import index_pb2
from retrieval.enrichment.batch import BatchOptions, BatchQuestion, answer_all, read_questions
from retrieval.errors import InvalidRequest
from tests.integration.conftest import ServerProcess

PUMP = index_pb2.Document(id="pump", text="The pump moves water from the well to the tank.")


def written(out: Path) -> dict[str, dict[str, object]]:
    """Returns the last line of each question."""
    return {row["id"]: row for row in map(json.loads, out.read_text(encoding="utf-8").splitlines())}


async def test_questions_are_answered_once(server: ServerProcess, tmp_path: Path) -> None:
    """Each has one whole answer with its sources; what is there already is not asked again, a cut line is."""
    out = tmp_path / "answers.jsonl"
    questions = [BatchQuestion("a", "What does the pump move?"), BatchQuestion("b", "Where does the water go?")]
    async with server.client("alice") as client:
        await client.create_collection("batch")
        await client.upsert("batch", [PUMP])
        options = BatchOptions("batch", at_once=2)
        first = await answer_all(client, questions[:1], out, options)
        with out.open("a", encoding="utf-8") as opened:
            opened.write('{"id": "b", "answer": "cut o\n')
        second = await answer_all(client, questions, out, options)
        third = await answer_all(client, questions, out, BatchOptions("nowhere"))
        await client.delete_collection("batch")
    assert (first.answered, first.kept) == (1, 0)
    assert (second.answered, second.kept, second.failed) == (1, 1, 0)
    assert (third.answered, third.kept) == (0, 2)
    lines = [line for line in out.read_text(encoding="utf-8").splitlines() if not line.endswith("cut o")]
    answers = {row["id"]: row for row in map(json.loads, lines)}
    assert "water" in str(answers["a"]["answer"])
    assert answers["a"]["sources"] == [{"number": 1, "document_id": "pump"}]


async def test_question_that_fails_is_named_and_tried_again(server: ServerProcess, tmp_path: Path) -> None:
    """A failure is a line with its reason, and no answer."""
    out = tmp_path / "answers.jsonl"
    questions = [BatchQuestion("a", "What does the pump move?")]
    async with server.client("alice") as client:
        figures = await answer_all(client, questions, out, BatchOptions("not-there"))
        again = await answer_all(client, questions, out, BatchOptions("not-there"))
    assert (figures.failed, again.failed) == (1, 1)
    assert "not-there" in str(written(out)["a"]["error"])


@pytest.mark.parametrize("lines", ["no json", "[]", '{"id": 1}', '{"question": "a"}\n{"id": "1", "question": "b"}'])
def test_line_that_is_no_question_is_named(tmp_path: Path, lines: str) -> None:
    """Nothing is asked when a line cannot be read, or two questions have one id."""
    path = tmp_path / "questions.jsonl"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(InvalidRequest) as refused:
        read_questions(path)
    assert refused.value.field.startswith("questions.jsonl:")
