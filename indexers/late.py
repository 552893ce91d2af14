"""Late interaction from token codes, stored or just computed: those of many passages are scored in one go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoders.types import TokenCodec


def scores_of(
    query: NDArray[np.float32], pieces: Sequence[NDArray[np.uint8] | None], codec: TokenCodec
) -> NDArray[np.float32]:
    """Returns the score of each passage, float32 [n], from its codes, token after token; NaN for one without."""
    scores = no_scores(len(pieces))
    there = [piece for piece in pieces if piece is not None]
    if there:
        codes = np.concatenate(there).reshape(-1, codec.code_bytes)
        ends = np.cumsum([piece.size for piece in there]) // codec.code_bytes
        scores[[piece is not None for piece in pieces]] = codec.scores(query, codes, ends)
    return scores


def no_scores(count: int) -> NDArray[np.float32]:
    """Returns the scores of passages that have no codes: NaN, float32 [count]."""
    return np.full(count, np.nan, dtype=np.float32)
