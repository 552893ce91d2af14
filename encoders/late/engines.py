"""One run of the bi-encoder, two results: a text's vector, and its token vectors or their codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoders.late.tokens import TokenProjection
from encoders.types import EncodedPassage, EncodedQuery, TokenizedText
from encoders.vector_engine import VectorEngine


class QueryEngine:
    """An `Engine` for questions. Without a projection there are no token vectors."""

    def __init__(self, engine: VectorEngine, projection: TokenProjection | None) -> None:
        self.model_id = engine.model_id
        self._engine = engine
        self._projection = projection

    def run(self, items: Sequence[TokenizedText]) -> list[EncodedQuery]:
        """Returns a vector and token vectors an item.

        Raises:
            NonFiniteOutput, EncodingFailed: as the bi-encoder.
        """
        found = zip(items, self._engine.vectors_and_states(items), strict=True)
        return [EncodedQuery(vector, self._tokens(item, states)) for item, (vector, states) in found]

    def _tokens(self, item: TokenizedText, states: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        if self._projection is None or states is None:
            return None
        return self._projection.query_vectors(item, states)


class PassageEngine:
    """An `Engine` for passages. Without a projection there are no codes."""

    def __init__(self, engine: VectorEngine, projection: TokenProjection | None) -> None:
        self.model_id = engine.model_id
        self._engine = engine
        self._projection = projection

    def run(self, items: Sequence[TokenizedText]) -> list[EncodedPassage]:
        """Returns a vector and token codes an item.

        Raises:
            NonFiniteOutput, EncodingFailed: as the bi-encoder.
        """
        found = zip(items, self._engine.vectors_and_states(items), strict=True)
        return [EncodedPassage(vector, self._tokens(item, states)) for item, (vector, states) in found]

    def _tokens(self, item: TokenizedText, states: NDArray[np.float32] | None) -> NDArray[np.uint8] | None:
        if self._projection is None or states is None:
            return None
        return self._projection.passage_codes(item, states)
