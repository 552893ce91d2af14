"""How much a difference of the first stage's score means: one number, fitted on training queries.

With it `scale * base` is the logit of a passage being the right one of its list, so a correction by the cross-encoder
is learnt on the same scale, and only where the first stage leaves room for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rerank.training.lists import TrainingList

_SCALES = np.geomspace(1.0, 200.0, 80)


def fit_scale(lists: Sequence[TrainingList]) -> float:
    """Returns the scale, from 1 to 200, with the least mean cross-entropy over the lists; 1.0 without any."""
    if not lists:
        return 1.0
    losses = [cross_entropy(scale, ((one.base, one.labels) for one in lists)) for scale in _SCALES]
    return float(_SCALES[int(np.argmin(losses))])


def cross_entropy(scale: float, scored: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> float:
    """Returns the mean over lists of -sum(p * log softmax(scale * score)), p the labels scaled to sum to one.

    It is ListNet's loss with its top-one approximation (Cao et al., 2007).
    """
    losses = [_list_loss(scale * scores, labels) for scores, labels in scored]
    return float(np.mean(losses)) if losses else 0.0


def _list_loss(logits: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    shifted = logits - logits.max()
    log_shares = shifted - np.log(np.exp(shifted).sum())
    return float(-(labels / labels.sum() * log_shares).sum())
