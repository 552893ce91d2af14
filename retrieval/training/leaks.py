"""Keeps out of training what the held-out queries ask in other words.

Splits are by query id, so a rephrasing of a test question under an id of its own, or a heading that is a question of a
FAQ, could train. Whatever is as near to a held-out query as a rephrasing is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rerank.training.examples import Example
from retrieval.training.encoding import BulkEncoder

# Cosine of all-MiniLM-L6-v2; two different questions about one paragraph are seldom above it.
NEAREST = 0.85
_BLOCK = 1_024


def without_rephrasings(
    examples: Sequence[Example], held_out: Sequence[str], encoder: BulkEncoder, nearest: float = NEAREST
) -> list[Example]:
    """Returns the examples whose query is less than `nearest` to every held-out query."""
    if not examples or not held_out:
        return list(examples)
    judged = encoder.matrix(encoder.queries(held_out)).T
    kept: list[Example] = []
    for start in range(0, len(examples), _BLOCK):
        block = examples[start : start + _BLOCK]
        cosines = encoder.matrix(encoder.queries([example.query for example in block])) @ judged
        kept.extend(example for example, row in zip(block, np.max(cosines, axis=1), strict=True) if row < nearest)
    return kept
