"""How good a ranking is, by what is known to be relevant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

NDCG_CUT = 10


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], cut: int = NDCG_CUT) -> float:
    """Returns the discounted gain of the first `cut` over the best possible one (Jarvelin and Kekalainen, 2002)."""
    best = _discounted(sorted(relevant.values(), reverse=True)[:cut])
    return _discounted([relevant.get(text_id, 0) for text_id in ranking[:cut]]) / best if best else 0.0


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))
