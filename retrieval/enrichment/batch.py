"""Answers a file of questions through a running server, and goes on where it was broken off.

Each answer is a line of JSON, written when it is whole, in the order in which they come. A question whose answer is
there already is not asked again, so running the same command once more takes up what is left. Batch requests wait
behind people's at the server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import grpc.aio

from headrace.v1 import retrieval_pb2
from retrieval.client import Client, retrieve_request
from retrieval.errors import InvalidRequest
from retrieval.server.convert.plain import plain

_ATTEMPTS = 4
_PASSING = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED)


@dataclass(frozen=True, slots=True)
class BatchQuestion:
    """A question with the name that its answer is found by."""

    question_id: str
    text: str


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a batch is answered."""

    collection: str
    backend: str = ""
    at_once: int = 4
    max_tokens: int = 0  # of prompts and answers together, over the whole file; 0 for no bound
    timeout_s: float = 300.0


@dataclass(slots=True)
class BatchFigures:
    """How far a batch is."""

    total: int = 0
    kept: int = 0  # answered by an earlier run
    answered: int = 0
    failed: int = 0
    left_out: int = 0  # since the budget is used up
    tokens: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


def read_questions(path: Path) -> list[BatchQuestion]:
    """Reads questions from JSON lines: `question`, `query` or `text`, and `id`, which is the line's number if absent.

    Raises:
        InvalidRequest: a line is no question, or two have one id; names the line.
    """
    found: dict[str, BatchQuestion] = {}
    with path.open(encoding="utf-8") as opened:
        for number, line in enumerate(opened, 1):
            if line.strip():
                one = _question(path, number, line)
                if one.question_id in found:
                    raise _invalid(path, number, f"a second question with the id {one.question_id!r}")
                found[one.question_id] = one
    return list(found.values())


async def answer_all(
    client: Client,
    questions: list[BatchQuestion],
    out: Path,
    options: BatchOptions,
    watch: Callable[[BatchFigures], None] = lambda figures: None,
) -> BatchFigures:
    """Answers what has no answer yet in `out`; what fails is named there with the reason, and asked again next time."""
    answers = dict(_answers(out))
    tokens = sum(int(one.get("tokens", 0)) for one in answers.values())
    figures = BatchFigures(len(questions), tokens=tokens)
    done = {name for name, one in answers.items() if "answer" in one}
    figures.kept = sum(one.question_id in done for one in questions)
    waiting: Iterator[BatchQuestion] = iter([one for one in questions if one.question_id not in done])
    with out.open("a", encoding="utf-8") as written:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(options.at_once):
                tasks.create_task(_work(client, waiting, written, options, (figures, watch)))
    return figures


async def _work(
    client: Client,
    waiting: Iterator[BatchQuestion],
    written: TextIO,
    options: BatchOptions,
    progress: tuple[BatchFigures, Callable[[BatchFigures], None]],
) -> None:
    figures, watch = progress
    for one in waiting:
        if options.max_tokens and figures.tokens >= options.max_tokens:
            figures.left_out += 1
            continue
        line: dict[str, Any] = {"id": one.question_id, "question": one.text}
        try:
            line |= await _answer(client, one, options)
            figures.answered += 1
            figures.tokens += int(line.get("tokens", 0))
        except grpc.aio.AioRpcError as error:
            line["error"] = error.details() or error.code().name
            figures.failed += 1
            figures.reasons[error.code().name] = figures.reasons.get(error.code().name, 0) + 1
        written.write(json.dumps(line, ensure_ascii=False) + "\n")
        written.flush()
        watch(figures)


async def _answer(client: Client, one: BatchQuestion, options: BatchOptions) -> dict[str, Any]:
    """Returns the answer with its sources; what may pass is tried again, with growing pauses."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return await _answered(client, one, options)
        except grpc.aio.AioRpcError as error:
            if error.code() not in _PASSING or attempt == _ATTEMPTS:
                raise
        await asyncio.sleep(2.0**attempt * 0.25)
    raise AssertionError("unreachable")


async def _answered(client: Client, one: BatchQuestion, options: BatchOptions) -> dict[str, Any]:
    request = retrieval_pb2.GenerateRequest(
        retrieve=retrieve_request(options.collection, one.text),
        backend=options.backend,
        priority=retrieval_pb2.PRIORITY_BATCH,
    )
    texts: list[str] = []
    sources: list[Mapping[str, Any]] = []
    async for event in client.generate(request, timeout_s=options.timeout_s):
        kind = event.WhichOneof("event")
        if kind == "retrieved":
            sources = plain(event.retrieved.context)["citations"] if event.retrieved.HasField("context") else []
        elif kind == "delta":
            texts.append(event.delta.text)
        elif kind == "completed":
            done = plain(event.completed)
            return {
                "answer": "".join(texts),
                "finish_reason": done["finish_reason"],
                "backend": done.get("backend", ""),
                "citations": done["citations"],
                "sources": [{"number": each["number"], "document_id": each["document_id"]} for each in sources],
                "tokens": sum(int(value) for name, value in done.get("usage", {}).items() if name in _COUNTED),
            }
    raise AssertionError("a stream that ends without its last event is an error of the client's")


_COUNTED = ("prompt_tokens", "output_tokens")


def _question(path: Path, number: int, line: str) -> BatchQuestion:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _invalid(path, number, "no JSON object") from error
    text = next((row[key] for key in ("question", "query", "text") if isinstance(row, dict) and row.get(key)), None)
    if not isinstance(text, str):
        raise _invalid(path, number, "no text in `question`, `query` or `text`")
    identity = row.get("id", row.get("_id"))
    return BatchQuestion(str(number) if identity is None else str(identity), text)


def _answers(out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields what is written already; a line that a crash has cut off is passed over."""
    if not out.exists():
        return
    for line in out.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
            yield str(row["id"]), row
        except (ValueError, KeyError, TypeError):
            continue


def _invalid(path: Path, number: int, what: str) -> InvalidRequest:
    place = f"{path.name}:{number}"
    return InvalidRequest(place, "a JSON object with a question", f"{place}: {what}; write one question a line")
