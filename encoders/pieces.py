"""What a worker computes at a time: one text at its exact length, or a padded batch of texts of like length.

Which of the two is measured (see `encoders.curve`), never assumed. Where cost is linear in tokens a batch gains nothing
and padding costs, so a piece is one text. Where a short run leaves the hardware idle (a GPU, a CPU with wide 8-bit
products, full precision) a piece is as many texts of like length as fit a budget of tokens, padding included. A model
whose results depend on what else is in the batch is never given one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Texts are alike when the longest is at most this much longer than the shortest, so padding stays below an eighth.
_LIKE_SHARE = 8
_LIKE_TOKENS = 4  # and always this much, since the first tokens of a run cost nothing by themselves


@dataclass(frozen=True, slots=True)
class PiecePolicy:
    """How pieces are cut for a model; the default is one text a run."""

    budget_tokens: int = 0  # of a batch, padding included; 0 for one text a run
    longest_tokens: int = 0  # texts above this run alone: a batch gains them nothing

    @property
    def batches(self) -> bool:
        """Whether a piece may hold more than one text."""
        return self.budget_tokens > 0


EXACT = PiecePolicy()


@dataclass(frozen=True, slots=True)
class Shape:
    """A piece as a batch: how many texts, and the lengths of the shortest and the longest."""

    count: int
    shortest_tokens: int
    longest_tokens: int

    @classmethod
    def of(cls, tokens: int) -> Shape:
        """Returns a piece of one text."""
        return cls(1, tokens, tokens)

    def with_text(self, tokens: int, policy: PiecePolicy) -> Shape | None:
        """Returns the piece with one more text; None when the policy does not allow it."""
        shortest, longest = min(self.shortest_tokens, tokens), max(self.longest_tokens, tokens)
        alike = longest - shortest <= max(_LIKE_TOKENS, longest // _LIKE_SHARE)
        within = longest <= policy.longest_tokens and longest * (self.count + 1) <= policy.budget_tokens
        return Shape(self.count + 1, shortest, longest) if alike and within else None


def cut(token_counts: Sequence[int], policy: PiecePolicy) -> list[list[int]]:
    """Cuts texts into pieces and returns their positions: by rising length, or one by one in the order given."""
    if not policy.batches:
        return [[position] for position in range(len(token_counts))]
    pieces: list[list[int]] = []
    shape: Shape | None = None
    for position in sorted(range(len(token_counts)), key=token_counts.__getitem__):
        joined = shape.with_text(token_counts[position], policy) if shape else None
        if joined is None:
            pieces.append([])
        shape = joined or Shape.of(token_counts[position])
        pieces[-1].append(position)
    return pieces
