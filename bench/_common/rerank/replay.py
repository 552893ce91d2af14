"""The stop rule on pools whose logits are known: what `rerank.anytime` decides, without a model and without waiting.

`Progress` is the product's own; only its clock is replaced, by tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._common.metrics import best_documents, ndcg
from bench._common.rerank.pools import RerankPool
from rerank.calibrate import combine, rank
from rerank.progress import Aim, Progress


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one policy made of one pool."""

    order: tuple[int, ...]  # positions in the pool, best first
    pairs: int
    tokens: int
    stop: str


def unranked(pool: RerankPool) -> Replayed:
    """Returns the order before the cross-encoder, for nothing."""
    return Replayed(tuple(range(len(pool.base))), 0, 0, "none")


def fixed(pool: RerankPool, aim: Aim, depth: int, budget_tokens: float = np.inf) -> Replayed:
    """Scores the first `depth` whatever comes out; past its budget the whole list keeps its order, at full cost.

    What lies below a depth that is less than what is shown follows in its old order.
    """
    pairs = min(depth, len(pool.base))
    tokens = int(pool.tokens[:pairs].sum())
    if tokens > budget_tokens:
        return Replayed(tuple(range(len(pool.base))), pairs, int(budget_tokens), "deadline")
    order = (*_order(pool, aim, np.arange(pairs)), *range(pairs, len(pool.base)))
    return Replayed(order, pairs, tokens, "all")


def anytime(pool: RerankPool, aim: Aim, piece_size: int, budget_tokens: float = np.inf) -> Replayed:
    """Scores as the product does, `piece_size` pairs at a time."""
    progress = Progress(pool.base, np.full(len(pool.base), np.nan), pool.tokens.tolist(), aim)
    left = budget_tokens
    while piece := progress.next_piece(piece_size, left):
        left -= int(pool.tokens[piece].sum())
        progress.note(piece, pool.logits[piece])
    scored = np.flatnonzero(~np.isnan(progress.logits))
    tokens = int(pool.tokens[scored].sum())
    if progress.stop == "deadline" and not progress.covered:
        return Replayed(tuple(range(len(pool.base))), len(scored), tokens, "deadline")
    return Replayed(_order(pool, aim, scored), len(scored), tokens, progress.stop)


def judged(pool: RerankPool, replayed: Replayed, cut: int) -> float:
    """Returns the nDCG of the order, a document at the place of its best chunk."""
    return ndcg(best_documents([pool.documents[place] for place in replayed.order]), pool.relevant, cut)


def overlap(ours: Replayed, full: Replayed, cut: int) -> float:
    """Returns the share of the first `cut` of one order that is among the first `cut` of the other."""
    wanted = set(full.order[:cut])
    return len(wanted.intersection(ours.order[:cut])) / max(1, len(wanted))


def _order(pool: RerankPool, aim: Aim, places: NDArray[np.intp]) -> tuple[int, ...]:
    logits = pool.logits[places]
    scores = combine(pool.base[places], logits, aim.weights)
    ids: Sequence[str] = [f"{place:04d}" for place in places]
    return tuple(int(places[one]) for one in rank(scores, logits, places, ids))
