"""Makes the context: takes hits best first, leaves out what is weak, repeated or too long, and numbers the rest.

One pass. A passage is compared with what is in the context so far, so a copy of a passage that did not fit still has
its chance, and a short passage may follow a long one that did not fit. Each passage is counted once, by itself, or not
at all when its count is stored: counting costs more than everything else here. Where a tokenizer's parts can make more
tokens together than apart, the finished text is counted whole, and loses its last passages if it is over the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.assembly.counting import PassageCounter, count_source
from retrieval.assembly.duplicates import KeptTexts, word_grams
from retrieval.assembly.gap import cut_at_gap
from retrieval.assembly.long_texts import LONGEST_TOKEN
from retrieval.assembly.merging import Sources, uncovered_text
from retrieval.assembly.template import sources_text
from retrieval.types import Citation, Context, Dropped, DropReason, Hit, PassageBounds

# What joining two texts may add to their sum.
_SEAM_TOKENS = 2


def assemble(
    hits: Sequence[Hit],
    budget_tokens: int,
    counter: PassageCounter,
    duplicate_overlap: float,
    min_score: float,
    passages: PassageBounds | None = None,
) -> Context:
    """Packs hits, best first, into a budget of tokens and lists every hit that is left out, with the reason.

    A hit whose score equals `min_score` stays; with `passages`, those below the largest gap between scores are left
    out. Citations are numbered from 1 in order of relevance; their passages are exact spans of their documents. The
    context is empty when nothing is left.
    """
    packer = _Packer(budget_tokens, counter, duplicate_overlap, longest_number=len(hits))
    dropped: dict[int, DropReason] = {}
    scores = [hit.score for hit in hits if hit.score >= min_score]
    kept = len(scores) if passages is None else cut_at_gap(scores, passages.least, passages.most)
    for rank, hit in enumerate(hits):
        if hit.score < min_score:
            reason: DropReason | None = DropReason.MIN_SCORE
        else:
            reason = packer.offer(rank, hit) if rank < kept else DropReason.GAP
        if reason is not None:
            dropped[rank] = reason
    text, citations, token_count = packer.finish(hits, dropped)
    return Context(
        text=text,
        token_count=token_count,
        budget_tokens=budget_tokens,
        tokenizer=counter.name,
        citations=citations,
        dropped=tuple(Dropped(hits[rank].passage.chunk_id, dropped[rank]) for rank in sorted(dropped)),
    )


class _Packer:
    """The context while it is filled."""

    def __init__(self, budget_tokens: int, counter: PassageCounter, overlap: float, longest_number: int) -> None:
        self._left = self._budget = budget_tokens
        self._counter = counter
        self._number = longest_number
        self._kept = KeptTexts(overlap)
        self._sources = Sources()
        self._accepted: list[int] = []

    def offer(self, rank: int, hit: Hit) -> DropReason | None:
        """Takes the hit, or says why not."""
        if len(hit.passage.text) > self._left * LONGEST_TOKEN:
            return DropReason.BUDGET
        grams = word_grams(hit.passage.text)
        if self._kept.holds(grams):
            return DropReason.DUPLICATE
        cost = self._cost(hit)
        if cost > self._left:
            return DropReason.BUDGET
        self._left -= cost
        self._kept.add(grams)
        self._sources.add(hit.passage)
        self._accepted.append(rank)
        return None

    def finish(self, hits: Sequence[Hit], dropped: dict[int, DropReason]) -> tuple[str, tuple[Citation, ...], int]:
        """Returns the text, its citations and its tokens; adds to `dropped` what the whole has no room for."""
        text = _render(self._sources)
        token_count = self._count_whole(text)
        while token_count > self._budget:
            dropped[self._accepted.pop()] = DropReason.BUDGET
            self._sources = Sources()
            for rank in self._accepted:
                self._sources.add(hits[rank].passage)
            text = _render(self._sources)
            token_count = self._count_whole(text)
        return text, _citations(self._sources), token_count

    def _count_whole(self, text: str) -> int:
        if not self._counter.adds_up:
            return self._counter.count(text) if text else 0
        sources = enumerate(self._sources.items, start=1)
        return sum(count_source(number, source.passage, self._counter) for number, source in sources)

    def _cost(self, hit: Hit) -> int:
        touching = self._sources.touching(hit.passage)
        if touching:
            added = uncovered_text(hit.passage, touching)
            if added == hit.passage.text:
                return self._counter.count_passage(hit.passage) + _SEAM_TOKENS
            return self._counter.count(added) + _SEAM_TOKENS if added else 0
        return count_source(self._number, hit.passage, self._counter)


def _render(sources: Sources) -> str:
    return sources_text((number, source.passage) for number, source in enumerate(sources.items, start=1))


def _citations(sources: Sources) -> tuple[Citation, ...]:
    return tuple(
        Citation(number, source.passage, tuple(member.chunk_id for member in source.members))
        for number, source in enumerate(sources.items, start=1)
    )
