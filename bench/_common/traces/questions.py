"""The questions that traces ask: each with its phrasings, its answers and the documents that hold them.

In squad-sub, `para-N`, `adv-N` and `disfl-N` are other phrasings of question N; in docs-faq `pfaqN` is `faqN` with its
product named. Questions that differ in case and white space only are one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench._common.beir import BeirSet, read_set

_REPHRASED = ("para-", "adv-", "disfl-")


@dataclass(frozen=True, slots=True)
class TraceQuestion:
    """A question of a set."""

    question_id: str
    text: str
    paraphrases: tuple[str, ...]
    answers: tuple[str, ...]  # each alone is right; empty where the set names none
    documents: tuple[str, ...]
    product: str = ""


def read_trace_questions(folder: Path) -> tuple[BeirSet, tuple[TraceQuestion, ...]]:
    """Returns a set and its questions, in the order of its qrels.

    Raises:
        FileNotFoundError: a file of the layout is missing.
    """
    read = read_set(folder)
    texts = dict(_texts(folder / "queries.jsonl"))
    merged: dict[str, TraceQuestion] = {}
    for question in read.questions:
        documents = tuple(name for name, grade in question.relevant.items() if grade > 0)
        answers = question.metadata.get("answers", ())
        made = TraceQuestion(
            question.query_id,
            question.text,
            tuple(text for name in _other_ids(question.query_id) if (text := texts.get(name))),
            tuple(map(str, answers)) if isinstance(answers, tuple) else (),
            documents,
            str(question.metadata.get("product", "")),
        )
        _merge(merged, made)
    return read, tuple(merged.values())


def _merge(merged: dict[str, TraceQuestion], made: TraceQuestion) -> None:
    key = " ".join(f"{made.product} {made.text}".casefold().split())
    known = merged.get(key)
    if known is None:
        merged[key] = made
        return
    paraphrases = tuple(dict.fromkeys((*known.paraphrases, *made.paraphrases)))
    answers = tuple(dict.fromkeys((*known.answers, *made.answers)))
    documents = tuple(dict.fromkeys((*known.documents, *made.documents)))
    merged[key] = TraceQuestion(known.question_id, known.text, paraphrases, answers, documents, known.product)


def _other_ids(query_id: str) -> Iterator[str]:
    yield from (f"{start}{query_id}" for start in _REPHRASED)
    if query_id.startswith("faq"):
        yield f"p{query_id}"


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            row: Mapping[str, str] = json.loads(line)
            yield row["_id"], row["text"]
