"""Questions that were encoded before a replay, so that no arm pays for what all of them would pay alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoders.types import AsyncDenseEncoder, EncodedPassage, EncodedQuery, Outcome, TextKind, TokenizedText, WorkClass


class KnownQuestions:
    """The `AsyncDenseEncoder` of questions that were encoded before the replay."""

    def __init__(self, encoder: AsyncDenseEncoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Outcome[EncodedQuery]] = {}
        self.model_id = encoder.model_id
        self.revision = encoder.revision
        self.dim = encoder.dim
        self.max_tokens = encoder.max_tokens
        self.codec = encoder.codec

    async def learn(self, texts: Sequence[str]) -> None:
        """Encodes texts for later."""
        for text in texts:
            if text not in self._known:
                self._known[text] = await self._encoder.encode_query(text, None)

    def vector(self, text: str) -> NDArray[np.float32]:
        """Returns float32 [dim] of a text that was learned."""
        value = self._known[text].value
        assert value is not None
        return value.vector

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        """Tokenizes as the encoder behind it does."""
        return self._encoder.tokenize(texts, kind)

    async def encode(
        self, texts: Sequence[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        """Encodes as the encoder behind it does."""
        return await self._encoder.encode(texts, kind, work_class, deadline_ns)

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[EncodedQuery]:
        """Returns what was learned."""
        return self._known[text]

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[EncodedPassage]]:
        """Encodes as the encoder behind it does."""
        return await self._encoder.encode_passages(texts, work_class, deadline_ns)
