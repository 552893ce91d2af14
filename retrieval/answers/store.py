"""The answers in this process: by key, and by the question's vector within a partition, always in step.

What leaves the store by eviction leaves the vectors with it, so a search never names an answer that is gone (SEM-08).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.types import EncodedQuery
from retrieval.answers import entry
from retrieval.answers.entry import Answer
from retrieval.answers.guard import Facts
from retrieval.answers.nearest import NearestQuestions
from retrieval.caching.keys import CacheKey
from retrieval.caching.memory import MemoryFigures
from retrieval.caching.s3fifo import S3Fifo

_VECTOR_COPIES = 2  # one here, one in the look-up


@dataclass(slots=True)
class Kept:
    """An answer with what is needed to compare its question with others."""

    answer: Answer
    facts: Facts | None  # None for a question that is too long to be read: its answer serves equal ones alone
    encoded: EncodedQuery | None  # None when its question was not embedded: the same
    result_key: CacheKey | None  # of the retrieval that its evidence was checked with last
    checked_at_ns: int  # when that was, on the clock of time.monotonic_ns
    tier: str = "memory"  # where it came from


@dataclass(frozen=True, slots=True)
class Near:
    """An answer whose question is like the one asked."""

    kept: Kept
    similarity: float  # cosine


class AnswerStore:
    """Keeps answers within a bound of bytes. Not thread-safe."""

    def __init__(self, capacity_bytes: int, on_gone: Callable[[CacheKey], None]) -> None:
        self._entries: S3Fifo[CacheKey, Kept] = S3Fifo(
            "answers", capacity_bytes, size_of=size_of, on_evict=lambda key, kept: self._leave(kept)
        )
        self._questions: dict[CacheKey, NearestQuestions] = {}
        self._on_gone = on_gone
        self._replaced: CacheKey | None = None  # while its new answer is put in place of the old one

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def used_bytes(self) -> int:
        """Bytes of the answers and their vectors, about."""
        return self._entries.used_bytes

    @property
    def figures(self) -> MemoryFigures:
        """How it fares."""
        return self._entries.figures

    def peek(self, key: CacheKey) -> Kept | None:
        """Returns an answer without counting that as a use."""
        return self._entries.peek(key)

    def get(self, key: CacheKey) -> Kept | None:
        """Returns the answer to exactly this question."""
        return self._entries.get(key)

    def put(self, kept: Kept) -> bool:
        """Keeps an answer in place of an earlier one to the same question; returns False when it is too large."""
        key = self._replaced = kept.answer.key
        self._entries.put(key, kept)
        self._replaced = None
        if key not in self._entries:
            return False
        if kept.encoded is not None and kept.facts is not None:
            vector = kept.encoded.vector
            questions = self._questions.get(kept.answer.partition)
            if questions is None:
                questions = self._questions[kept.answer.partition] = NearestQuestions(len(vector))
            questions.add(key.digest, vector)
        return True

    def remove(self, key: CacheKey) -> None:
        """Forgets an answer, if it is there."""
        self._entries.invalidate(key)

    def near(
        self, partition: CacheKey, vector: NDArray[np.float32], limit: int, min_similarity: float
    ) -> Iterator[Near]:
        """Yields answers whose questions are alike, most alike first."""
        questions = self._questions.get(partition)
        if questions is None:
            return
        for neighbour in questions.search(vector, limit, min_similarity):
            key = CacheKey(partition.purpose, partition.tenant, partition.collection, neighbour.key)
            kept = self._entries.peek(key)
            if kept is not None:
                yield Near(kept, neighbour.similarity)

    def remove_where(self, chosen: Callable[[Answer], bool]) -> int:
        """Forgets all answers that are chosen, and returns how many."""
        return self._entries.invalidate_where(lambda key, kept: chosen(kept.answer))

    def _leave(self, kept: Kept) -> None:
        key, partition = kept.answer.key, kept.answer.partition
        questions = self._questions.get(partition)
        if questions is not None:
            questions.remove(key.digest)
            if not len(questions):
                del self._questions[partition]
        if key != self._replaced:
            self._on_gone(key)


def size_of(kept: Kept) -> int:
    """Returns the bytes that an answer takes with its vectors, about."""
    encoded = kept.encoded
    vectors = 0
    if encoded is not None:
        vectors = _VECTOR_COPIES * encoded.vector.nbytes + (0 if encoded.tokens is None else encoded.tokens.nbytes)
    return entry.size_of(kept.answer) + vectors + 4 * len(kept.answer.question) + 600
