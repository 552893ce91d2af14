"""Arranges sources by relevance, always."""

from __future__ import annotations

from retrieval.speech import Usage
from retrieval.types import Arrangement, Context


class RelevanceOrder:
    """An `Arranger` that leaves the sources as they were assembled, and remembers nothing."""

    def arrange(self, root: str, context: Context) -> Arrangement:
        """Returns the sources by relevance."""
        return Arrangement.by_relevance(context)

    def sent(self, root: str, context: Context, arrangement: Arrangement) -> None:
        """Does nothing."""

    def learn(self, root: str, context: Context, arrangement: Arrangement, usage: Usage) -> None:
        """Does nothing."""
