"""What is believed before any label: fitted to clinc150 and Disfl-QA by `bench.risk --fit`, both sets weighing alike.

The precision is that of a few dozen labels, so that a collection's own evidence soon has the word.
"""

from __future__ import annotations

import numpy as np

from retrieval.answers.risk.model import Prior

PRIOR = Prior(
    center=np.array([0.6219, 0.5226, 0.6397, 1.497, 1.571, 0.7406, 0.7117, 0.1403, 1.576, 1.416]),
    scale=np.array([0.748, 0.6078, 0.826, 0.5691, 0.7528, 0.3221, 0.3622, 0.2243, 0.4518, 0.6047]),
    weights=np.array(
        [0.08631, 0.6498, 0.2805, -0.06937, -0.1203, -0.527, -0.3232, -0.04881, -0.9099, -0.2759, -0.1808]
    ),
    precision=np.full(11, 4.0),
)
