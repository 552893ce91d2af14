"""Reads sets in BEIR's layout: `corpus.jsonl`, `queries.jsonl`, `qrels/<name>.tsv` (Thakur et al., 2021)."""

from __future__ import annotations

import csv
import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from indexers.types import Document, Metadata, Scalar

Relevance = Mapping[str, int]  # document id -> grade; 0 and below are not relevant


class Split(enum.Enum):
    """A part of a set's queries, fixed by a hash of the query's id: 60 % train, 20 % dev, 20 % test."""

    ALL = "all"
    TRAIN = "train"
    DEV = "dev"
    TEST = "test"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Question:
    """A query of a set, with the documents that answer it."""

    query_id: str
    text: str
    relevant: Relevance
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BeirSet:
    """A set: its documents, and the questions that the chosen qrels judge."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]

    def part(self, split: Split, limit: int = 0) -> BeirSet:
        """Returns the set with the questions of a split only, the first `limit` of them if that is not 0."""
        kept = [question for question in self.questions if split in (Split.ALL, split_of(question.query_id))]
        return replace(self, questions=tuple(kept[:limit] if limit else kept))


def read_set(folder: Path, qrels: str = "test") -> BeirSet:
    """Reads a set; questions without a relevant document are left out, as trec_eval does.

    Raises:
        FileNotFoundError: a file of the layout is missing.
    """
    relevant = _read_qrels(folder / "qrels" / f"{qrels}.tsv")
    queries = {row["_id"]: row for row in _rows(folder / "queries.jsonl")}
    questions = tuple(
        Question(query_id, queries[query_id]["text"], grades, _metadata(queries[query_id]))
        for query_id, grades in relevant.items()
        if query_id in queries and any(grade > 0 for grade in grades.values())
    )
    documents = tuple(map(document_of, _rows(folder / "corpus.jsonl")))
    name = folder.resolve().name if qrels == "test" else f"{folder.resolve().name}:{qrels}"
    return BeirSet(name, documents, questions)


def document_of(row: Mapping[str, Any]) -> Document:
    """Makes a document of a line of a corpus."""
    return Document(row["_id"], row.get("title") or "", row["text"], metadata=_metadata(row))


def split_of(query_id: str) -> Split:
    """Returns the split that a query belongs to, the same on every machine."""
    share = int.from_bytes(blake2b(query_id.encode(), digest_size=8).digest(), "little") % 100
    if share < 60:
        return Split.TRAIN
    return Split.DEV if share < 80 else Split.TEST


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _read_qrels(path: Path) -> dict[str, dict[str, int]]:
    relevant: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            relevant.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return relevant


def _metadata(row: Mapping[str, Any]) -> Metadata:
    """Keeps what a declared field could hold: scalars and lists of scalars."""
    found: dict[str, Scalar | tuple[Scalar, ...]] = {}
    for name, value in (row.get("metadata") or {}).items():
        if isinstance(value, (str, int, float, bool)):
            found[name] = value
        elif isinstance(value, list) and value and all(isinstance(one, (str, int, float, bool)) for one in value):
            found[name] = tuple(value)
    return found
