"""Blocks of sources under marks that stay: the same passage has the same mark, whatever the question.

A model server reuses the longest beginning that two prompts share, token for token, and a block begins with its mark. A
mark that is the rank would differ from question to question, so here it is a number made of what the passage is. Of two
passages in one context that come to the same number, the less relevant one gets the next free one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrieval.assembly.template import source_mark, source_trail, sources_text
from retrieval.caching.digests import digest_of
from retrieval.types import Arrangement, Citation, Context

MOST_MARKS = 999
"""Three digits at most: more would cost tokens in every block and once more in the ranking."""

RANKING = "Most relevant first: "

_DIGEST_BYTES = 8
_MARK_BITS = 16


@dataclass(frozen=True, slots=True)
class Block:
    """A source under a mark."""

    key: int  # equal for equal text: made of passage and mark
    mark: int
    number: int  # of the citation, which is its rank
    tokens: int  # about, its share of the context's; at least 1


@dataclass(frozen=True, slots=True)
class Blocks:
    """The sources of a context, most relevant first, under both kinds of marks."""

    lasting: tuple[Block, ...]
    ranked: tuple[Block, ...]  # each mark is the citation number

    @classmethod
    def of(cls, context: Context) -> Blocks:
        """Makes the blocks of a context."""
        digests = [_digest(citation) for citation in context.citations]
        tokens = _tokens(context)
        numbers = [citation.number for citation in context.citations]
        return cls(
            _blocks(digests, lasting_marks(digests), numbers, tokens), _blocks(digests, numbers, numbers, tokens)
        )

    def of_arrangement(self, arrangement: Arrangement) -> list[Block]:
        """Returns the blocks that an arrangement of this context consists of, in its order."""
        known = {(block.mark, block.number): block for block in (*self.ranked, *self.lasting)}
        return [known[place] for place in arrangement.numbers]


def lasting_marks(digests: Sequence[int]) -> list[int]:
    """Returns a mark a digest, each of its own, from 1 to 999; beyond only when there are more digests than that."""
    return list(_marks(digests, max(MOST_MARKS, len(digests))))


def arranged(context: Context, blocks: Sequence[Block]) -> Arrangement:
    """Returns the sources of a context in the order of the blocks, with their ranking if that is not the order."""
    citations = {citation.number: citation for citation in context.citations}
    text = sources_text((block.mark, citations[block.number].passage) for block in blocks)
    numbers = tuple((block.mark, block.number) for block in blocks)
    by_rank = sorted(blocks, key=lambda block: block.number)
    if by_rank == list(blocks):
        return Arrangement(text, numbers)
    return Arrangement(text, numbers, RANKING + " ".join(source_mark(block.mark) for block in by_rank))


def _marks(digests: Sequence[int], most: int) -> Iterator[int]:
    taken = set[int]()
    for digest in digests:
        mark = digest % most + 1
        while mark in taken:
            mark = mark % most + 1
        taken.add(mark)
        yield mark


def _digest(citation: Citation) -> int:
    passage = citation.passage
    # As one part, which takes half the time; two passages that came to the same text here would only be mistaken for
    # each other in what is predicted.
    text = "\n".join((*citation.chunk_ids, source_trail(passage), passage.text))
    return int.from_bytes(digest_of((text,), _DIGEST_BYTES), "little")


def _tokens(context: Context) -> list[int]:
    """Shares the context's tokens out: by the counts stored with its passages, or by length where one has none."""
    passages = [citation.passage for citation in context.citations]
    weights = [passage.header_token_count + passage.token_count for passage in passages]
    if not all(passage.token_count for passage in passages):
        weights = [len(passage.text) for passage in passages]
    share = context.token_count / max(1, sum(weights))
    return [max(1, round(weight * share)) for weight in weights]


def _blocks(
    digests: Sequence[int], marks: Sequence[int], numbers: Sequence[int], tokens: Sequence[int]
) -> tuple[Block, ...]:
    return tuple(
        Block((digest << _MARK_BITS) | mark, mark, number, count)
        for digest, mark, number, count in zip(digests, marks, numbers, tokens, strict=True)
    )
