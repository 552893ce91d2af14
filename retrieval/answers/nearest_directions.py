"""The directions in which stored questions differ most, found in steps of about a millisecond.

They are the principal ones (Pearson, 1901) without a mean taken off, for it is inner products that are bounded. They
are found by orthogonal iteration (Golub and Van Loan, Matrix Computations, 8.2) over a sample of the rows; an
eigendecomposition would stop the event loop for tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.nearest_rows import Rows

_SAMPLE_ROWS = 512
_SAMPLES = 16
_PASSES = 4
_SEED = 20_261_201


def find_directions(rows: Rows, count: int) -> Iterator[NDArray[np.float32] | None]:
    """Gives None after each step, and orthonormal columns at the end, [dim, count], those that matter most first.

    Each pass reads up to 8,192 rows spread over all; they may change between the steps.
    """
    columns = np.random.default_rng(_SEED).standard_normal((rows.dim, count), dtype=np.float32)
    yield None
    for _ in range(_PASSES):
        product = np.zeros_like(columns)
        for sample in range(_SAMPLES):
            some = rows.part(sample * len(rows) // _SAMPLES, _SAMPLE_ROWS)
            product += some.T @ (some @ columns)
            yield None
        columns = _orthonormal(product)
        yield None
    yield columns


def _orthonormal(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.ascontiguousarray(np.linalg.qr(columns)[0])
