"""What the sparse branch knows of a collection, whichever model makes its terms.

A stored text is a bag of terms with a 16-bit count each. Statistics turn counts into weights and bound the score of a
query; they are of one collection and stay frozen for a generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from encoders.types import SparseVector, TermCounts


class TermStatistics(Protocol):
    """Statistics of one kind; an empty collection has them too."""

    @property
    def document_count(self) -> int:
        """Texts that were counted."""
        ...

    def weights(self, counts: NDArray[np.uint16], lengths: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the weight float32 [entries] of each entry of a text; `lengths` are those of the entries' texts."""
        ...

    def upper_bound(self, query: SparseVector) -> float:
        """Returns a score that no text reaches with this query; 0.0 for a query without terms."""
        ...

    def collected(self, texts: Iterable[TermCounts]) -> TermStatistics:
        """Returns statistics of the same kind of these texts."""
        ...

    def counted(
        self, lengths: NDArray[np.int64], entry_terms: NDArray[np.uint32], counts: NDArray[np.uint16]
    ) -> TermStatistics:
        """Returns the same of texts given as entries: `lengths` [texts], the rest [entries] in any order."""
        ...

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Returns what a file keeps of them; the kinds have different names in it."""
        ...


def document_vector(text: TermCounts, statistics: TermStatistics) -> SparseVector:
    """Returns the weight of each term of a text."""
    lengths = np.full(len(text.terms), text.length, dtype=np.int64)
    return SparseVector(text.terms, statistics.weights(text.counts, lengths))
