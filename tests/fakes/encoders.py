"""Encoders without a model: a counter that splits long words as subword tokenizers do, and a deterministic encoder."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from encoders.errors import EncoderError, EncodingFailed, SchedulerFull
from encoders.late.codec import LevelCodec
from encoders.types import EncodedPassage, EncodedQuery, Outcome, TextKind, TokenCodec, TokenizedText, WorkClass

_TOKEN = re.compile(r"[a-zA-Z0-9_]{1,6}|[^\sa-zA-Z0-9_]")


class PieceCounter:
    """Counts pieces of at most six letters, and every other visible character by itself."""

    name = "pieces"
    adds_up = True

    def count(self, text: str) -> int:
        return len(self.offsets(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _TOKEN.finditer(text)]


class HashEncoder:
    """Gives every text a unit vector made of its hash, and records what it was asked for.

    Texts that contain `poison` fail by themselves; `refusals` calls are refused first, as by a full queue.
    """

    model_id = "hash"
    max_tokens = 256

    def __init__(
        self,
        dim: int = 8,
        revision: str = "r1",
        poison: str = "POISON",
        refusals: int = 0,
        codec: LevelCodec | None = None,
    ) -> None:
        self.dim = dim
        self.codec: TokenCodec | None = codec
        self._codec = codec
        self.revision = revision
        self.texts: list[str] = []
        self.work_classes: list[WorkClass] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._poison = poison
        self._refusals = refusals

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        return [_tokenized(text, self.max_tokens) for text in texts]

    async def encode(
        self, texts: Sequence[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        if self._refusals:
            self._refusals -= 1
            raise SchedulerFull(queued_items=9, capacity_items=9, retry_after_ms=1.0)
        self.in_flight += len(texts)
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            self.texts += texts
            self.work_classes.append(work_class)
            return [self._outcome(text) for text in texts]
        finally:
            self.in_flight -= len(texts)

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[EncodedQuery]:
        [outcome] = await self.encode([text], TextKind.QUERY, WorkClass.ONLINE, deadline_ns)
        tokens = None if self._codec is None else word_vectors(text, self._codec.dim)
        shared = tokens if tokens is None or not len(tokens) else tokens / np.float32(len(tokens))
        return outcome.map(lambda vector: EncodedQuery(vector, shared))

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[EncodedPassage]]:
        outcomes = await self.encode(texts, TextKind.PASSAGE, work_class, deadline_ns)
        return [
            outcome.map(partial(EncodedPassage, codes=self._codes(text)))
            for text, outcome in zip(texts, outcomes, strict=True)
        ]

    def _codes(self, text: str) -> NDArray[np.uint8] | None:
        return None if self._codec is None else self._codec.encode(word_vectors(text, self._codec.dim))

    def _outcome(self, text: str) -> Outcome[NDArray[np.float32]]:
        tokens = _tokenized(text, self.max_tokens)
        error: EncoderError | None = EncodingFailed(self.model_id) if self._poison in text else None
        value = None if error else unit_vector(text, self.dim)
        return Outcome(value, error, tokens.token_count, tokens.truncated, queue_ns=1, compute_ns=1)


def word_vectors(text: str, dim: int) -> NDArray[np.float32]:
    """Returns float32 [words, dim]: the unit vector of each word by itself."""
    words = text.split()
    return np.stack([unit_vector(word, dim) for word in words]) if words else np.empty((0, dim), dtype=np.float32)


def unit_vector(text: str, dim: int) -> NDArray[np.float32]:
    """Returns a float32 [dim] vector of unit length that depends on the text alone."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    vector = np.random.default_rng(seed).standard_normal(dim)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _tokenized(text: str, limit: int) -> TokenizedText:
    count = PieceCounter().count(text) + 2
    ids = np.arange(min(count, limit), dtype=np.int64)
    return TokenizedText(ids, np.zeros_like(ids), count)
