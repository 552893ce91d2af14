"""What of a chunk is embedded, counted for BM25 and reranked: title and heading path, then the chunk's text.

A chunk that says "run it twice" is found only by whoever knows what "it" is; the header tells. It is bounded to a
quarter of the limit, so that a long title cannot push the text out. To change this text is to embed every collection
again.
"""

from __future__ import annotations

from collections.abc import Sequence

from encoders.types import TokenCounter

_SEPARATOR = " > "
HEADER_SHARE = 4  # the header has at most one part in so many of the limit


def header_text(title: str, heading_path: Sequence[str], counter: TokenCounter, limit_tokens: int) -> str:
    """Returns `title > heading > ... > heading` within a quarter of the limit.

    When it is too long, the innermost heading stays, then the title, then what fits of those between, from within.
    A heading that repeats the title is left out.
    """
    parts = [part for part in (_one_line(title), *map(_one_line, heading_path)) if part]
    if len(parts) > 1 and parts[0].casefold() == parts[1].casefold():
        del parts[0]
    budget = limit_tokens // HEADER_SHARE
    whole = _SEPARATOR.join(parts)
    if not parts or _fits(whole, counter, budget):
        return whole
    return _shortened(parts, counter, budget)


def _shortened(parts: list[str], counter: TokenCounter, budget: int) -> str:
    inner = _cut(parts[-1], counter, budget if len(parts) == 1 else budget * 2 // 3)
    if len(parts) == 1:
        return inner
    outer = _cut(parts[0], counter, budget - counter.count(_SEPARATOR + inner))
    kept = [part for part in (outer, inner) if part]
    for part in reversed(parts[1:-1]):
        longer = [*kept[:1], part, *kept[1:]]
        if len(part) > budget * 16 or not _fits(_SEPARATOR.join(longer), counter, budget):
            break
        kept = longer
    return _cut(_SEPARATOR.join(kept), counter, budget)


def _cut(text: str, counter: TokenCounter, budget: int) -> str:
    """Cuts a text to so many tokens; a word cut in two can give more of them, so it counts again."""
    text = text[: max(0, budget) * 16]
    while text and not _fits(text, counter, budget):
        end = counter.offsets(text)[budget][0] if budget > 0 else 0
        text = text[: min(end, len(text) - 1)].rstrip()
    return text


def _fits(text: str, counter: TokenCounter, budget: int) -> bool:
    return counter.count(text) <= budget


def _one_line(text: str) -> str:
    return " ".join(text.split())
