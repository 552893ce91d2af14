"""Arranges the sources of prompts to one server for its prefix cache, and learns from what the server reports.

What is predicted for a prompt counts only blocks that an answered prompt has had before: a prompt still on its way may
not have been computed yet, and a failed one never was. When the server had less than predicted, it has forgotten the
first block that was missing, so it has forgotten all that it used before that block too, and holds no more than what it
used since: all of that is taken out of the tree, whose capacity shrinks to the rest, and grows slowly with each
prediction that holds, and at once when prefix order is tried anew. The prompt itself is in the server's cache from then
on, whatever was there.

Servers report cached tokens with those of the instructions. How many these are is learned too, for each root: as many
as were cached at least where no source was predicted to be. `retrieval.prefix.worth` says when prefix order pays.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from retrieval.prefix.marks import Block, Blocks, arranged
from retrieval.prefix.ordering import prefix_order
from retrieval.prefix.popularity import Popularity
from retrieval.prefix.tree import Node, PrefixTree
from retrieval.prefix.worth import Forecast, Worth
from retrieval.speech import Usage
from retrieval.types import Arrangement, Context

_MOST_PENDING = 1024
_MOST_ROOTS = 64
_MOST_MADE = 64
_GROWTH = 1.05
_LEAST_SHARE = 32  # of the configured capacity: the believed one falls to a part of so many at least
_COUNT_ERROR = 0.05  # of tokens, more or less
_MARK_TOKENS = 5  # in the ranking: brackets, a space and a number


@dataclass(frozen=True, slots=True)
class PrefixFigures:
    """What has come of ordering so far; tokens are of sources alone."""

    prompts: int
    predicted_tokens: int  # cached by prediction, over the prompts that were answered
    reported_tokens: int  # cached by what the server says
    active: bool  # whether prompts are in prefix order now
    capacity_tokens: int  # that the server is believed to keep cached


@dataclass(frozen=True, slots=True)
class _Expected:
    """A block that should be cached: where it starts and ends, in tokens of sources, and the prompt that used it."""

    start: int
    end: int
    used: int


@dataclass(frozen=True, slots=True)
class _Pending:
    """A prompt that was sent and not answered yet: its blocks, and those that should be cached."""

    blocks: list[Block]
    expected: list[_Expected]


@dataclass(slots=True)
class _Root:
    """What is known of the prompts with one root."""

    popularity: Popularity = field(default_factory=Popularity)
    head_tokens: int = 0  # cached of what comes before the sources; 0 when not known


class PrefixOrder:
    """An `Arranger` that puts first what the server has cached, until that does not pay."""

    def __init__(self, prefix_cache_tokens: int) -> None:
        self._limit_tokens = prefix_cache_tokens
        self._tree = PrefixTree(prefix_cache_tokens)
        self._as_by_prefix = PrefixTree(prefix_cache_tokens)
        self._as_by_relevance = PrefixTree(prefix_cache_tokens)
        self._worth = Worth()
        self._roots: OrderedDict[str, _Root] = OrderedDict()
        self._pending: OrderedDict[tuple[str, str], _Pending] = OrderedDict()
        self._made: OrderedDict[int, tuple[Context, Blocks]] = OrderedDict()  # by the identity of the context
        self._prompts = self._predicted = self._reported = 0

    @property
    def figures(self) -> PrefixFigures:
        """What has come of ordering so far."""
        capacity = self._tree.capacity_tokens
        return PrefixFigures(self._prompts, self._predicted, self._reported, self._worth.active, capacity)

    def arrange(self, root: str, context: Context) -> Arrangement:
        """Returns the sources in the order in which they should be sent."""
        if not self._worth.active or not context.citations:
            return Arrangement.by_relevance(context)
        blocks = self._blocks(context).lasting
        return arranged(context, prefix_order(root, blocks, self._tree, self._root(root).popularity))

    def sent(self, root: str, context: Context, arrangement: Arrangement) -> None:
        """Notes that a prompt with these sources has gone to the server."""
        if not context.citations:
            return
        self._prompts += 1
        blocks = self._blocks(context)
        sent = blocks.of_arrangement(arrangement)
        self._pending[root, arrangement.text] = _Pending(sent, _expected(self._tree.matched(root, sent)))
        if len(self._pending) > _MOST_PENDING:
            self._pending.popitem(last=False)
        self._tree.insert(root, sent)
        was_active = self._worth.active
        self._worth.sent(self._forecast(root, blocks))
        if self._worth.active and not was_active:
            self._tree.capacity_tokens = self._limit_tokens

    def learn(self, root: str, context: Context, arrangement: Arrangement, usage: Usage) -> None:
        """Corrects what is remembered by what the server says it had cached."""
        pending = self._pending.pop((root, arrangement.text), None)
        if pending is None:
            return
        predicted = pending.expected[-1].end if pending.expected else 0
        reported = self._sources_cached(root, usage.cached_prompt_tokens, predicted)
        self._correct(pending.expected, reported)
        for node in self._tree.matched(root, pending.blocks):
            node.confirmed = True
        self._predicted += predicted
        self._reported += reported
        self._worth.answered(predicted, reported)

    def _forecast(self, root: str, blocks: Blocks) -> Forecast:
        """Goes on as if all prompts had been sent in the one order, and as if all had been sent in the other."""
        popularity = self._root(root).popularity
        ordered = prefix_order(root, blocks.lasting, self._as_by_prefix, popularity)
        popularity.add([block.key for block in ordered])
        return Forecast(
            by_prefix=_found_then_sent(self._as_by_prefix, root, ordered),
            by_relevance=_found_then_sent(self._as_by_relevance, root, blocks.ranked),
            sources=sum(block.tokens for block in ordered),
            ranking=0 if ordered == list(blocks.lasting) else _MARK_TOKENS * len(ordered),
        )

    def _blocks(self, context: Context) -> Blocks:
        """Makes the blocks of a context once between arranging and sending: to digest texts takes longest here."""
        known = self._made.get(id(context))
        if known is None or known[0] is not context:
            known = self._made[id(context)] = (context, Blocks.of(context))
            if len(self._made) > _MOST_MADE:
                self._made.popitem(last=False)
        return known[1]

    def _sources_cached(self, root: str, cached: int, predicted: int) -> int:
        known = self._root(root)
        if cached and not predicted:
            known.head_tokens = min(known.head_tokens or cached, cached)
        return max(0, cached - known.head_tokens)

    def _correct(self, expected: list[_Expected], reported: int) -> None:
        missing = next((block for block in expected if reported < _enough(block)), None)
        if missing is not None:
            self._tree.forget_older(missing.used)
            self._tree.capacity_tokens = max(self._limit_tokens // _LEAST_SHARE, self._tree.tokens)
        elif expected:
            grown = int(self._tree.capacity_tokens * _GROWTH) + 1
            self._tree.capacity_tokens = min(self._limit_tokens, grown)

    def _root(self, root: str) -> _Root:
        known = self._roots.setdefault(root, _Root())
        self._roots.move_to_end(root)
        if len(self._roots) > _MOST_ROOTS:
            self._roots.popitem(last=False)
        return known


def _enough(block: _Expected) -> float:
    """Returns how many cached tokens say that a block was there: counts are estimates, and servers count in pages."""
    return (block.start + block.end) / 2 - _COUNT_ERROR * block.end


def _expected(matched: list[Node]) -> list[_Expected]:
    found: list[_Expected] = []
    for node in matched:
        if not node.confirmed:
            break
        found.append(_Expected(node.depth_tokens - node.tokens, node.depth_tokens, node.used))
    return found


def _found_then_sent(tree: PrefixTree, root: str, blocks: list[Block] | tuple[Block, ...]) -> int:
    matched = tree.matched(root, blocks)
    tree.insert(root, blocks)
    return matched[-1].depth_tokens if matched else 0
