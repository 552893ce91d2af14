"""What is believed before any label: fitted to halves of clinc150 and Disfl-QA, both weighing alike.

`python -m bench.risk --fit` makes the numbers anew. The precision is that of a few dozen labels, so that a collection's
own evidence soon has the word, and least for the cosine and the bias, which differ most between collections. Inputs are
in the order of `retrieval.answers.similarity.FEATURES`; the bias is last.
"""

from __future__ import annotations

import numpy as np

from retrieval.answers.risk.model import Prior

PRIOR = Prior(
    center=np.array([0.6219, 0.5226, 0.6397, 1.497, 1.571, 0.7406, 0.7117, 0.1694, 1.348, 1.204, 0.9692, 0.9905]),
    scale=np.array([0.748, 0.6078, 0.826, 0.5691, 0.7528, 0.3221, 0.3622, 0.2631, 0.5105, 0.5938, 0.1454, 0.09686]),
    weights=np.array(
        [
            0.05669,
            0.6204,
            0.1802,
            -0.0942,
            0.003642,
            -0.5172,
            -0.2644,
            0.07078,
            -0.908,
            -0.4159,
            0.1078,
            -0.06399,
            -0.1192,
        ]
    ),
    precision=np.array([0.25, *[4.0] * 11, 0.25]),
)
