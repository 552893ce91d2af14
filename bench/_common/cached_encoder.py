"""An encoder that remembers: what this model ever encoded comes from the store, the rest is computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench._common.vectors import VectorStore
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

    def __init__(self, encoder: AsyncDenseEncoder, store: VectorStore) -> None:
        self._encoder = encoder
        self._store = store
        self.model_id = encoder.model_id
        self.revision = encoder.revision
        self.dim = encoder.dim
        self.max_tokens = encoder.max_tokens
        self.codec: TokenCodec | None = None  # the store holds vectors alone
        self.computed = 0  # texts that were not in the store

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        """Adds the prompt of the kind, cuts at `max_tokens`."""
        return self._encoder.tokenize(texts, kind)

    async def encode(
        self, texts: Sequence[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        """Returns one outcome a text, in order, as the encoder behind it gave it now or in an earlier run."""
        found = {text: self._store.get(text, kind) for text in texts}
        missing = [text for text, vector in found.items() if vector is None]
        fresh = await self._compute(missing, kind, work_class, deadline_ns) if missing else {}
        return [fresh[text] if text in fresh else _remembered(found[text]) for text in texts]

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[EncodedQuery]:
        """Encodes a question without token vectors."""
        [outcome] = await self.encode([text], TextKind.QUERY, WorkClass.ONLINE, deadline_ns)
        return outcome.map(lambda vector: EncodedQuery(vector, None))

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[EncodedPassage]]:
        """Encodes passages without codes."""
        outcomes = await self.encode(texts, TextKind.PASSAGE, work_class, deadline_ns)
        return [outcome.map(lambda vector: EncodedPassage(vector, None)) for outcome in outcomes]

    async def _compute(
        self, texts: list[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> dict[str, Outcome[NDArray[np.float32]]]:
        outcomes = await self._encoder.encode(texts, kind, work_class, deadline_ns)
        self.computed += len(texts)
        good = [
            (text, outcome.value) for text, outcome in zip(texts, outcomes, strict=True) if outcome.value is not None
        ]
        if good:
            self._store.put([text for text, _ in good], kind, np.stack([vector for _, vector in good]))
        return dict(zip(texts, outcomes, strict=True))


def _remembered(vector: NDArray[np.float32] | None) -> Outcome[NDArray[np.float32]]:
    return Outcome(vector, None, token_count=0, truncated=False, queue_ns=0, compute_ns=0)
