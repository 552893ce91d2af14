"""The orders that are compared, each an `Arranger` as the product has it, and the contexts that they arrange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench._common.prefix.questions import Asked
from bench._common.traces.events import Ask
from retrieval.assembly import PassageCounter, assemble
from retrieval.assembly.gap import cut_at_gap
from retrieval.dispatch.types import Arranger
from retrieval.prefix import PrefixOrder, RelevanceOrder
from retrieval.prefix.marks import Blocks, arranged
from retrieval.settings import Settings
from retrieval.speech import Usage
from retrieval.types import Arrangement, Context


@dataclass(frozen=True, slots=True)
class Arm:
    """An order, and whether passages below the gap are left out."""

    name: str
    open: Callable[[int], Arranger]  # for a server that keeps so many tokens
    gap: bool = False


class IdOrder:
    """Sorts passages by what they are: the order that shares beginnings without remembering anything."""

    def arrange(self, root: str, context: Context) -> Arrangement:
        """Returns the sources in an order that only depends on which they are."""
        return arranged(context, sorted(Blocks.of(context).lasting, key=lambda block: block.key))

    def sent(self, root: str, context: Context, arrangement: Arrangement) -> None:
        """Does nothing."""

    def learn(self, root: str, context: Context, arrangement: Arrangement, usage: Usage) -> None:
        """Does nothing."""


RELEVANCE = Arm("relevance", lambda _: RelevanceOrder())
PREFIX = Arm("prefix", PrefixOrder)
PREFIX_GAP = Arm("prefix, gap", PrefixOrder, gap=True)
ARMS: Sequence[Arm] = (
    RELEVANCE,
    Arm("by id", lambda _: IdOrder()),
    PREFIX,
    Arm("relevance, gap", lambda _: RelevanceOrder(), gap=True),
    PREFIX_GAP,
)
REAL_ARMS: Sequence[Arm] = (RELEVANCE, PREFIX, PREFIX_GAP)


class Contexts:
    """Assembles the contexts of requests, once for each text."""

    def __init__(self, settings: Settings, counter: PassageCounter, budget_tokens: int) -> None:
        self._settings, self._counter, self._budget_tokens = settings.context, counter, budget_tokens
        self._made: dict[tuple[str, bool], Context] = {}

    def of(self, asked: Asked, *, gap: bool) -> Context:
        """Returns the context of a request."""
        key = (asked.ask.text, gap)
        if key not in self._made:
            self._made[key] = self._assemble(asked, gap)
        return self._made[key]

    def _assemble(self, asked: Asked, gap: bool) -> Context:
        hits, bounds = asked.hits, self._settings
        if gap:
            hits = hits[: cut_at_gap([hit.score for hit in hits], bounds.min_passages, bounds.max_passages)]
        return assemble(hits, self._budget_tokens, self._counter, bounds.duplicate_overlap, float("-inf"))


def least_uncached(contexts: Sequence[Context], capacity_tokens: int) -> float:
    """Returns tokens of passages per request that no order can avoid: those of passages that are not cached at all.

    It is what a cache would have to compute that could use a passage at any place of a prompt again.
    """
    kept: dict[int, int] = {}
    held = uncached = 0
    for context in contexts:
        for block in Blocks.of(context).lasting:
            tokens = kept.pop(block.key, 0)
            if not tokens:
                tokens = block.tokens
                uncached, held = uncached + tokens, held + tokens
            kept[block.key] = tokens
        while held > capacity_tokens:
            held -= kept.pop(next(iter(kept)))
    return uncached / max(1, len(contexts))


def gold_share(asks: Sequence[Ask], contexts: Sequence[Context]) -> float:
    """Returns the share of the requests with known documents whose context holds one of them."""
    judged = [(ask.documents, context) for ask, context in zip(asks, contexts, strict=True) if ask.documents]
    held = [any(one.passage.document_id in documents for one in context.citations) for documents, context in judged]
    return sum(held) / max(1, len(held))
