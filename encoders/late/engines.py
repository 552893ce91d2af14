"""One run of the bi-encoder, two results: a text's vector, and its token vectors or their codes."""

from __future__ import annotations

from collections.abc import Sequence

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
        return [self._encoded(item) for item in items]

    def _encoded(self, item: TokenizedText) -> EncodedQuery:
        vector, states = self._engine.vector_and_states(item)
        if self._projection is None or states is None:
            return EncodedQuery(vector, None)
        return EncodedQuery(vector, self._projection.query_vectors(item, states))


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
        return [self._encoded(item) for item in items]

    def _encoded(self, item: TokenizedText) -> EncodedPassage:
        vector, states = self._engine.vector_and_states(item)
        if self._projection is None or states is None:
            return EncodedPassage(vector, None)
        return EncodedPassage(vector, self._projection.passage_codes(item, states))
