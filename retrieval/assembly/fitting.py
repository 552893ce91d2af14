"""Makes a context that was assembled for one model fit another: counts it as that model does, and drops its end.

What is left is byte for byte what assembly would have written of these passages, so prompts to different models begin
alike. The least relevant passages go first and the others keep their numbers, which users and caches know them by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from retrieval.assembly.counting import PassageCounter, count_source
from retrieval.assembly.template import sources_text
from retrieval.types import Citation, Context, Dropped, DropReason


def fit_context(context: Context, budget_tokens: int, counter: PassageCounter) -> Context:
    """Returns the context without as many of its last passages as it takes to fit; itself when it fits as it is.

    It is empty when not even the first passage fits. What is dropped is listed after what was dropped before. Where
    parts do not add up to the tokens of the whole, a text that fits with room to spare is counted by its sources.
    """
    if counter.name == context.tokenizer and context.token_count <= budget_tokens:
        return context
    kept, token_count = _longest_start(context, budget_tokens, counter)
    citations = context.citations[:kept]
    gone = [chunk_id for citation in context.citations[kept:] for chunk_id in citation.chunk_ids]
    return replace(
        context,
        text=context.text if not gone else render(citations),
        token_count=token_count,
        budget_tokens=budget_tokens,
        tokenizer=counter.name,
        citations=citations,
        dropped=(*context.dropped, *(Dropped(chunk_id, DropReason.BUDGET) for chunk_id in gone)),
    )


def render(citations: Sequence[Citation]) -> str:
    """Returns numbered sources as one text."""
    return sources_text((citation.number, citation.passage) for citation in citations)


def _longest_start(context: Context, budget_tokens: int, counter: PassageCounter) -> tuple[int, int]:
    """Returns how many citations fit from the first on, and their tokens."""
    citations = context.citations
    parts = [0, *accumulate(count_source(each.number, each.passage, counter) for each in citations)]
    kept = max(place for place, tokens in enumerate(parts) if tokens <= max(0, budget_tokens))
    if counter.adds_up or parts[-1] + _spare_tokens(len(citations), parts[-1]) <= budget_tokens:
        return kept, parts[kept]
    # The parts say about where the end is; the text as a whole says it exactly.
    counts = {0: 0}

    def count(place: int) -> int:
        if place not in counts:
            counts[place] = counter.count(context.text if place == len(citations) else render(citations[:place]))
        return counts[place]

    while kept and count(kept) > budget_tokens:
        kept -= 1
    while kept < len(citations) and kept + 1 not in counts and count(kept + 1) <= budget_tokens:
        kept += 1
    return kept, count(kept)


def _spare_tokens(sources: int, tokens: int) -> int:
    """Returns more than a whole may have beyond its parts. Counting it takes milliseconds, its parts are remembered."""
    return 4 * sources + tokens // 16
