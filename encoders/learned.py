"""Learned term weights (SPLADE) in the place of word counts, so that one store serves both.

A weight ln(1 + relu(logit)) is at most about 4: it is kept as a 16-bit number of 4096ths, which is finer than the model
is exact. Nothing of the collection enters a weight. What is counted is the highest weight of each word, for the bound

    score <= sum over the query's words of its weight * the highest weight of the word in the collection

where a word that the collection has not counts with the highest weight of all, as an unseen one does in BM25.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoders.types import SparseVector, TermCounts

_STEPS = 4096.0
_HIGHEST = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class LearnedStatistics:
    """How many texts a collection has, and the highest weight of each word in it."""

    document_count: int
    terms: NDArray[np.uint32]  # [terms], strictly increasing
    highest: NDArray[np.uint16]  # [terms], as stored

    def weights(self, counts: NDArray[np.uint16], lengths: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the weights float32 [entries] as the model gave them, but for rounding."""
        del lengths
        return counts.astype(np.float32) / np.float32(_STEPS)

    def upper_bound(self, query: SparseVector) -> float:
        """Returns a score that no text of the collection exceeds; written since, one may, and counts as the best."""
        if not len(self.terms):
            return float(query.values.sum(dtype=np.float64))
        position = np.minimum(np.searchsorted(self.terms, query.indices), len(self.terms) - 1)
        highest = np.where(self.terms[position] == query.indices, self.highest[position], self.highest.max()) / _STEPS
        return float(query.values.astype(np.float64) @ highest)

    def collected(self, texts: Iterable[TermCounts]) -> LearnedStatistics:
        """Returns the statistics of these texts, read one by one."""
        count, highest = 0, np.zeros(0, dtype=np.uint16)
        for text in texts:
            count += 1
            if len(text.terms) and text.terms[-1] >= len(highest):
                highest = np.pad(highest, (0, int(text.terms[-1]) + 1 - len(highest)))
            highest[text.terms] = np.maximum(highest[text.terms], text.counts)
        return _of(count, highest)

    def counted(
        self, lengths: NDArray[np.int64], entry_terms: NDArray[np.uint32], counts: NDArray[np.uint16]
    ) -> LearnedStatistics:
        """Returns the same of texts given as entries."""
        highest = np.zeros(int(entry_terms.max(initial=0)) + 1, dtype=np.uint16)
        np.maximum.at(highest, entry_terms, counts)
        return _of(len(lengths), highest)

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Returns what a file keeps."""
        return {"document_count": np.array(self.document_count), "terms": self.terms, "highest": self.highest}


NO_LEARNED_STATISTICS = LearnedStatistics(0, np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint16))


def stored_weights(vector: SparseVector) -> TermCounts:
    """Rounds a passage's weights to what is stored; those that round to nothing are left out."""
    rounded = np.minimum(np.rint(vector.values.astype(np.float64) * _STEPS), _HIGHEST).astype(np.uint16)
    kept = rounded > 0
    return TermCounts(vector.indices[kept], rounded[kept], int(kept.sum()))


def _of(count: int, highest: NDArray[np.uint16]) -> LearnedStatistics:
    terms = np.flatnonzero(highest)
    return LearnedStatistics(count, terms.astype(np.uint32), highest[terms])
