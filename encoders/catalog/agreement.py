"""How far two computations of the same model agree: in direction, in order, in scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cosines(expected: NDArray[np.float32], found: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns the cosine of each row with its counterpart: [n]; both [n, dim], unit length."""
    result: NDArray[np.float64] = (expected.astype(np.float64) * found).sum(axis=1)
    return result


def neighbour_agreement(expected: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    """Returns how alike each row ranks all others in both: the mean of Kendall's tau over the rows; 1 for two rows."""
    orders = zip(expected @ expected.T, found @ found.T, strict=True)
    taus = [kendall_tau(np.delete(first, row), np.delete(second, row)) for row, (first, second) in enumerate(orders)]
    return float(np.mean(taus))


def kendall_tau(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """Returns tau-b, (agreeing - disagreeing pairs) / sqrt(pairs untied in first * in second) (Kendall 1945).

    Where nothing can be ranked, as in a list of one, both orders are the same: 1.
    """
    upper = np.triu_indices(len(first), k=1)
    signs = [np.sign(values[:, np.newaxis] - values)[upper] for values in (first, second)]
    untied = [np.count_nonzero(sign) for sign in signs]
    if not all(untied):
        return 1.0 if not any(untied) else 0.0
    return float((signs[0] * signs[1]).sum() / np.sqrt(untied[0] * untied[1]))


def pearson(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Returns the correlation; 0 when one of them never varies, 1 when neither does and they are equal."""
    centred = [values - values.mean() for values in (first, second)]
    scale = float(np.linalg.norm(centred[0]) * np.linalg.norm(centred[1]))
    if scale == 0.0:
        return float(np.allclose(first, second))
    return float(centred[0] @ centred[1]) / scale
