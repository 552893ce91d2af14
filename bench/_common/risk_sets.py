"""Question pairs with a label, read from their files and split once by a hash of the question that was asked.

A pair is an asked question, the stored question whose answer might serve it, and whether it does. Sets of pairs hold
them as they are; a set of cached questions gets them from its nearest neighbours (`risk_neighbours`).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Pair:
    """An asked question, a stored one, and whether the stored one's answer serves."""

    asked: str
    stored: str
    correct: bool


@dataclass(frozen=True, slots=True)
class CachedQuestions:
    """Stored questions, and asked ones with the stored questions that mean the same (none: a look-alike)."""

    stored: Sequence[str]
    asked: Mapping[str, frozenset[str]]


def read_pairs(path: Path) -> list[Pair]:
    """Reads tab-separated columns `text_a` (stored), `text_b` (asked) and `label`; leaves equal questions out."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        pairs = [Pair(row["text_b"], row["text_a"], row["label"] == "1") for row in rows]
    return [pair for pair in pairs if pair.asked != pair.stored]


def read_cached_questions(folder: Path, stored_count: int) -> CachedQuestions:
    """Reads a cache workload; of the stored questions, all that a label names and others by hash up to the count."""
    texts = {row["_id"]: row["text"] for row in _rows(folder / "corpus.jsonl")}
    asked = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
    same: dict[str, set[str]] = {text: set() for text in asked.values()}
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if int(row["score"]) > 0 and row["query-id"] in asked:
                same[asked[row["query-id"]]].add(row["corpus-id"])
    named = set().union(*same.values())
    for row in _rows(folder / "misses.jsonl"):
        same.setdefault(row["text"], set())
        named.update(row["metadata"]["near_misses"])
    others = sorted((one for one in texts if one not in named), key=_digest)
    kept = [one for one in texts if one in named] + others[: max(0, stored_count - len(named))]
    meant = {text: frozenset(texts[one] for one in ids) for text, ids in same.items()}
    return CachedQuestions([texts[one] for one in kept], meant)


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Splits into a half to tune on and a half to test on, by the asked question; each in an order given by hash."""
    ordered = sorted(pairs, key=lambda pair: _digest(f"{pair.asked}\0{pair.stored}"))
    halves: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in ordered:
        halves[_digest(pair.asked)[0] & 1].append(pair)
    return halves


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
