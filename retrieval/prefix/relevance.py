"""Passages in the order of their relevance, which is what a model reads unless its backend asks for another order."""

from __future__ import annotations

from retrieval.types import Arrangement, Context, Usage


class RelevanceOrder:
    """An `Arranger` that leaves passages as they are and remembers nothing."""

    def arrange(self, root: str, context: Context) -> Arrangement:
        """Returns the sources as they were assembled."""
        return Arrangement.by_relevance(context)

    def sent(self, root: str, context: Context, arrangement: Arrangement) -> None:
        """Does nothing."""

    def learn(self, root: str, context: Context, arrangement: Arrangement, usage: Usage) -> None:
        """Does nothing."""
