"""A complete answer as it is kept: its text, what it cites, and what it was made from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from indexers.types import Passage
from retrieval.caching.digests import digest_of
from retrieval.caching.json_bytes import DAMAGED, read_json, text_of, write_json
from retrieval.caching.keys import CacheKey
from retrieval.types import AnswerCitation

_FORMAT = 1
_FINGERPRINT_BYTES = 16
_OBJECT_BYTES = 900


@dataclass(frozen=True, slots=True)
class Cited:
    """A numbered source that the answer cites."""

    number: int
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """A passage that was found for the question, cited or not."""

    chunk_id: str
    document_id: str
    fingerprint: str  # of its content


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer that ended normally and cites at least one source."""

    key: CacheKey
    partition: CacheKey
    question: str
    text: str
    marks: tuple[AnswerCitation, ...]  # offsets in `text`
    cited: tuple[Cited, ...]
    seen: tuple[Seen, ...]  # best first
    backend: str
    model: str
    stored_at_s: float  # since the epoch


def fingerprint(passage: Passage) -> str:
    """Returns a hash of what the model read of a passage."""
    return digest_of((passage.header, passage.text), _FINGERPRINT_BYTES).hex()


def size_of(answer: Answer) -> int:
    """Returns the bytes that an answer takes in memory, about."""
    ids = sum(len(one.chunk_id) + len(one.document_id) + 250 for one in answer.seen)
    marks = 200 * (len(answer.marks) + len(answer.cited))
    return _OBJECT_BYTES + sys.getsizeof(answer.text) + sys.getsizeof(answer.question) + ids + marks


def encode(answer: Answer) -> bytes:
    """Writes an answer as bytes; its key stands outside of them."""
    written = {
        "format": _FORMAT,
        "partition": answer.partition.hex,
        "question": answer.question,
        "text": answer.text,
        "marks": [[mark.number, mark.start, mark.end, mark.document_id] for mark in answer.marks],
        "cited": [[one.number, list(one.chunk_ids)] for one in answer.cited],
        "seen": [[one.chunk_id, one.document_id, one.fingerprint] for one in answer.seen],
        "backend": answer.backend,
        "model": answer.model,
        "stored_at_s": answer.stored_at_s,
    }
    return write_json(written)


def decode(stored: bytes, key: CacheKey, partition: CacheKey | None = None) -> Answer | None:
    """Reads what `encode` wrote for this key; None for anything that is not exactly that, or of another partition.

    Whoever serves the answer names the partition; whoever only shows it need not.
    """
    try:
        read: Any = read_json(stored)
        its = CacheKey(key.purpose, key.tenant, key.collection, bytes.fromhex(read["partition"]))
        if read["format"] != _FORMAT or partition not in (None, its):
            return None
        return Answer(
            key=key,
            partition=its,
            question=text_of(read["question"]),
            text=text_of(read["text"]),
            marks=tuple(
                AnswerCitation(int(n), int(start), int(end), text_of(to)) for n, start, end, to in read["marks"]
            ),
            cited=tuple(Cited(int(number), tuple(map(text_of, ids))) for number, ids in read["cited"]),
            seen=tuple(
                Seen(text_of(chunk), text_of(document), text_of(hashed)) for chunk, document, hashed in read["seen"]
            ),
            backend=text_of(read["backend"]),
            model=text_of(read["model"]),
            stored_at_s=float(read["stored_at_s"]),
        )
    except DAMAGED:
        return None
