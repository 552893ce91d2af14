"""What is believed before any label: fitted to halves of clinc150 and Disfl-QA, both weighing alike.

`python -m bench.risk --fit` makes the numbers anew. The precision is that of a few dozen labels, so that a collection's
own evidence soon has the word, and least for the cosine and the bias, which differ most between collections. Inputs are
in the order of `retrieval.answers.similarity.FEATURES`; the bias is last.
"""

from __future__ import annotations

import numpy as np

from retrieval.answers.risk.model import Prior

PRIOR = Prior(
    center=np.array([0.6219, 0.5226, 0.6397, 1.497, 1.571, 0.7406, 0.7117, 0.1659, 1.361, 1.219, 0.9691, 0.9883]),
    scale=np.array([0.748, 0.6078, 0.826, 0.5691, 0.7528, 0.3221, 0.3622, 0.2613, 0.5091, 0.5948, 0.1457, 0.1073]),
    weights=np.array(
        [
            0.06176,
            0.6577,
            0.213,
            -0.1435,
            -0.01064,
            -0.5352,
            -0.2828,
            0.02051,
            -0.8491,
            -0.3855,
            0.1149,
            -0.1179,
            -0.1379,
        ]
    ),
    precision=np.array([0.25, *[4.0] * 11, 0.25]),
)
