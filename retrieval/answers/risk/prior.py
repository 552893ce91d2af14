"""What is believed before any label: fitted to halves of clinc150 and Disfl-QA, both weighing alike.

`python -m bench.risk --fit` makes the numbers anew. The precision is that of a few dozen labels, so that a collection's
own evidence soon has the word, and least for the cosine and the bias, which differ most between collections. Inputs are
in the order of `retrieval.answers.similarity.FEATURES`; the bias is last.
"""

from __future__ import annotations

import numpy as np

from retrieval.answers.risk.model import Prior

PRIOR = Prior(
    center=np.array([0.6219, 0.5226, 0.6397, 1.497, 1.571, 0.7406, 0.7117, 0.177, 1.278, 1.233, 0.9724, 0.9471]),
    scale=np.array([0.748, 0.6078, 0.826, 0.5691, 0.7528, 0.3221, 0.3622, 0.2889, 0.5683, 0.5823, 0.1433, 0.2239]),
    weights=np.array(
        [
            0.03337,
            0.8835,
            0.1303,
            -0.5676,
            -0.02329,
            -0.6993,
            -0.2009,
            0.0718,
            -0.2787,
            -0.5349,
            0.07237,
            -0.07135,
            -0.2181,
        ]
    ),
    precision=np.array([0.25, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0.25]),
)
