"""An encoder that remembers: what this model ever encoded comes from the store, the rest is computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench._common.encodings import EncodingStore, Stored
from encoders.types import (
    AsyncDenseEncoder,
    EncodedPassage,
    EncodedQuery,
    Outcome,
    TextKind,
    TokenCodec,
    TokenizedText,
    WorkClass,
)


class CachedEncoder:
    """The `AsyncDenseEncoder` in front of a store. What comes from the store has cost nothing: no tokens, no time."""

    def __init__(self, encoder: AsyncDenseEncoder, store: EncodingStore) -> None:
        self._encoder = encoder
        self._store = store
        self.model_id = encoder.model_id
        self.revision = encoder.revision
        self.dim = encoder.dim
        self.max_tokens = encoder.max_tokens
        self.codec: TokenCodec | None = encoder.codec
        self.computed = 0  # texts that were not in the store

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        """Adds the prompt of the kind, cuts at `max_tokens`."""
        return self._encoder.tokenize(texts, kind)

    async def encode(
        self, texts: Sequence[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        """Returns one outcome a text, in order, as the encoder behind it gave it now or in an earlier run."""
        return [outcome.map(_vector) for outcome in await self._stored(texts, kind, work_class, deadline_ns)]

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[EncodedQuery]:
        """Encodes a question with its token vectors, or remembers them."""
        [outcome] = await self._stored([text], TextKind.QUERY, WorkClass.ONLINE, deadline_ns)
        return outcome.map(self._query)

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[EncodedPassage]]:
        """Encodes passages with their token codes, or remembers them."""
        outcomes = await self._stored(texts, TextKind.PASSAGE, work_class, deadline_ns)
        return [outcome.map(self._passage) for outcome in outcomes]

    async def _stored(
        self, texts: Sequence[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[Stored]]:
        found = self._store.get(texts, kind)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        fresh: dict[str, Outcome[Stored]] = {}
        if missing:
            computed = await self._compute(missing, kind, work_class, deadline_ns)
            self.computed += len(missing)
            fresh = dict(zip(missing, computed, strict=True))
            good = [(text, outcome.value) for text, outcome in fresh.items() if outcome.value is not None]
            self._store.put(good, kind)
        return [fresh[text] if text in fresh else _remembered(found[text]) for text in texts]

    async def _compute(
        self, texts: list[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[Stored]]:
        if kind is TextKind.PASSAGE:
            passages = await self._encoder.encode_passages(texts, work_class, deadline_ns)
            return [outcome.map(lambda value: _packed(value.vector, value.codes)) for outcome in passages]
        queries = [await self._encoder.encode_query(text, deadline_ns) for text in texts]
        return [outcome.map(lambda value: _packed(value.vector, value.tokens)) for outcome in queries]

    def _query(self, stored: Stored) -> EncodedQuery:
        tokens = np.frombuffer(stored.tokens, dtype=np.float32)
        return EncodedQuery(_vector(stored), tokens.reshape(-1, self.codec.dim) if self.codec else None)

    def _passage(self, stored: Stored) -> EncodedPassage:
        codes = np.frombuffer(stored.tokens, dtype=np.uint8)
        return EncodedPassage(_vector(stored), codes.reshape(-1, self.codec.code_bytes) if self.codec else None)


def _packed(vector: NDArray[np.float32], tokens: NDArray[np.float32] | NDArray[np.uint8] | None) -> Stored:
    return Stored(vector.tobytes(), b"" if tokens is None else tokens.tobytes())


def _vector(stored: Stored) -> NDArray[np.float32]:
    return np.frombuffer(stored.vector, dtype=np.float32)


def _remembered(stored: Stored) -> Outcome[Stored]:
    return Outcome(stored, None, token_count=0, truncated=False, queue_ns=0, compute_ns=0)
