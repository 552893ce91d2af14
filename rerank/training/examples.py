"""What there is to learn from: texts, and queries with the texts that answer them.

Sets come in BEIR's layout (`corpus.jsonl`, `queries.jsonl`, `qrels/<name>.tsv`; Thakur et al., 2021) or as a file of
JSON lines {"query": ..., "passage": ...}.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rerank.training.errors import TrainingDataInvalid


@dataclass(frozen=True, slots=True)
class SourceText:
    """A document before it is cut into passages."""

    text_id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Example:
    """A query, and the grades of the texts that answer it; a text that is not named is not relevant."""

    query_id: str
    query: str
    relevant: Mapping[str, int]  # text id -> grade, above 0


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Texts, and queries over them."""

    name: str
    texts: tuple[SourceText, ...]
    examples: tuple[Example, ...]


def read_beir(folder: Path, qrels: str = "test") -> ExampleSet:
    """Reads a set in BEIR's layout; queries without a relevant text are left out.

    Raises:
        FileNotFoundError: a file of the layout is missing.
        TrainingDataInvalid: a line cannot be read, or nothing is left.
    """
    queries = {row["_id"]: row["text"] for row in read_rows(folder / "queries.jsonl", "_id", "text")}
    examples = tuple(
        Example(query_id, queries[query_id], grades)
        for query_id, grades in _qrels(folder / "qrels" / f"{qrels}.tsv").items()
        if query_id in queries
    )
    if not examples:
        raise TrainingDataInvalid(folder, f"no query of qrels/{qrels}.tsv has a relevant document")
    name = folder.resolve().name if qrels == "test" else f"{folder.resolve().name}:{qrels}"
    return ExampleSet(name, tuple(read_texts(folder / "corpus.jsonl")), examples)


def read_pairs(path: Path) -> ExampleSet:
    """Reads JSON lines {"query", "passage"}; equal passages are one text, equal queries one query.

    Raises:
        FileNotFoundError: there is no such file.
        TrainingDataInvalid: a line cannot be read, or there is none.
    """
    texts: dict[str, SourceText] = {}
    relevant: dict[str, dict[str, int]] = {}
    for row in read_rows(path, "query", "passage"):
        text = texts.setdefault(row["passage"], SourceText(f"t{len(texts)}", "", row["passage"]))
        relevant.setdefault(row["query"], {})[text.text_id] = 1
    if not relevant:
        raise TrainingDataInvalid(path, "it has no pairs")
    # The id is the query itself, so that a query keeps its split when the file grows.
    return ExampleSet(
        path.stem, tuple(texts.values()), tuple(Example(query, query, grades) for query, grades in relevant.items())
    )


def read_texts(path: Path) -> Iterator[SourceText]:
    """Reads the documents of a corpus in BEIR's layout, gzip or not.

    Raises:
        TrainingDataInvalid: a line cannot be read.
    """
    for row in read_rows(path, "_id", "text"):
        yield SourceText(row["_id"], row.get("title") or "", row["text"], row.get("metadata") or {})


def read_rows(path: Path, *needed: str) -> Iterator[dict[str, Any]]:
    """Reads JSON lines, gzip or not, whose `needed` fields are strings.

    Raises:
        TrainingDataInvalid: names the line that cannot be read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _row(path, number, line, needed)


def _row(path: Path, number: int, line: str, needed: tuple[str, ...]) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as cause:
        raise TrainingDataInvalid(path, f"line {number} is no JSON") from cause
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in needed):
        raise TrainingDataInvalid(path, f"line {number} has no text under {' and '.join(needed)}")
    return row


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            try:
                query_id, text_id, grade = row["query-id"], row["corpus-id"], int(row["score"])
            except (KeyError, TypeError, ValueError) as cause:
                raise TrainingDataInvalid(path, "its columns are not query-id, corpus-id, score") from cause
            if grade > 0:
                found.setdefault(query_id, {})[text_id] = grade
    return found
