"""Token states of passages, computed once, from which the codes of every variant are made.

States are held in 16 bits, which rounds them far less than 8-bit numbers do. Codes are made many passages at a time, by
the arithmetic of `encoders.late.tokens`; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bench._common.late.variants import Arm
from encoders.cpu import usable_cpus
from encoders.dense import OnnxDenseEncoder
from encoders.late.tokens import TokenProjection
from encoders.types import TokenizedText

T = TypeVar("T")

_CODED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class TokenStates:
    """The kept tokens of passages, one passage after another, within each in the order of their ids."""

    ids: NDArray[np.int64]  # [n]
    states: NDArray[np.float16]  # [n, states]
    ends: NDArray[np.int64]  # [passages], where each ends

    @property
    def begins(self) -> NDArray[np.int64]:
        """Where each passage begins, [passages]."""
        return np.concatenate(([0], self.ends[:-1])).astype(np.int64)


@dataclass(frozen=True, slots=True)
class TokenCodes:
    """The codes of passages in one variant."""

    codes: NDArray[np.uint8]  # [n, code_bytes]
    ends: NDArray[np.int64]  # [passages]

    def of(self, passages: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Returns the codes of some passages, one after another, and where each ends."""
        begins = np.concatenate(([0], self.ends[:-1]))
        pieces = [self.codes[begins[place] : self.ends[place]] for place in passages]
        return np.concatenate(pieces), np.cumsum([len(piece) for piece in pieces])


def states_of(encoder: OnnxDenseEncoder, items: Sequence[TokenizedText]) -> list[NDArray[np.float32]]:
    """Runs the bare encoder on every core: float32 [tokens, states] an item."""
    return _map_states(encoder, items, lambda item, states: states)


def passage_states(
    encoder: OnnxDenseEncoder, items: Sequence[TokenizedText], weights: NDArray[np.float32]
) -> TokenStates:
    """Does the same for passages, and keeps the tokens that have a weight."""

    def kept(item: TokenizedText, states: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        order = np.argsort(item.ids, kind="stable")
        order = order[weights[item.ids[order]] > 0]
        return item.ids[order], states[order].astype(np.float16)

    found = _map_states(encoder, items, kept)
    return TokenStates(
        ids=np.concatenate([ids for ids, _ in found]),
        states=np.concatenate([states for _, states in found]),
        ends=np.cumsum([len(ids) for ids, _ in found]),
    )


def _map_states(
    encoder: OnnxDenseEncoder, items: Sequence[TokenizedText], keep: Callable[[TokenizedText, NDArray[np.float32]], T]
) -> list[T]:
    def run(item: TokenizedText) -> T:
        [(_, states)] = encoder.engine.vectors_and_states([item])
        assert states is not None  # the projection was fitted to them
        return keep(item, states)

    with ThreadPoolExecutor(usable_cpus()) as threads:
        return list(threads.map(run, items))


def codes_of(passages: TokenStates, arm: Arm) -> TokenCodes:
    """Makes the codes of every passage as the arm's variant has them."""
    begins, codes, counts = passages.begins, [], []
    for first in range(0, len(passages.ends), _CODED_AT_ONCE):
        block = slice(first, first + _CODED_AT_ONCE)
        rows = slice(begins[block][0], passages.ends[block][-1])
        owners = np.repeat(np.arange(len(begins[block])), passages.ends[block] - begins[block])
        made, of = _coded(owners, passages.ids[rows], passages.states[rows], arm)
        codes.append(made)
        counts.append(np.bincount(of, minlength=len(begins[block])))
    return TokenCodes(np.concatenate(codes), np.cumsum(np.concatenate(counts)))


def _coded(
    owners: NDArray[np.int64], ids: NDArray[np.int64], states: NDArray[np.float16], arm: Arm
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Returns the codes of some passages' tokens, and whose each is."""
    kept = kept_tokens(ids, arm)
    owners, ids = owners[kept], ids[kept]
    vectors = _projected(states[kept].astype(np.float32), arm.projection)
    if arm.variant.pooled and len(ids):
        firsts = np.flatnonzero((np.diff(ids, prepend=-1) != 0) | (np.diff(owners, prepend=-1) != 0))
        vectors, owners = _unit(np.add.reduceat(vectors, firsts, axis=0)), owners[firsts]
    return arm.coder.encode(vectors), owners


def kept_tokens(ids: NDArray[np.int64], arm: Arm) -> NDArray[np.bool_]:
    """Says of each token whether the arm's variant has a vector for it."""
    weights = arm.projection.token_weights[ids]
    return (weights > 0) & (weights >= arm.variant.least_weight)


def mean_tokens(items: Sequence[TokenizedText], arm: Arm) -> float:
    """Returns how many token vectors a passage has on average in the arm's variant."""
    total = 0
    for item in items:
        kept = item.ids[kept_tokens(item.ids, arm)]
        total += len(np.unique(kept)) if arm.variant.pooled else len(kept)
    return total / max(1, len(items))


def _projected(states: NDArray[np.float32], projection: TokenProjection) -> NDArray[np.float32]:
    centered: NDArray[np.float32] = _unit(states) - projection.center
    return _unit(centered @ projection.projection)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9))
    unit: NDArray[np.float32] = vectors / lengths
    return unit
