"""BM25 as sparse vectors: the document side saturates and normalises, the query side carries the IDF.

The dot product of the two is the BM25 score (Robertson and Zaragoza, 2009), so any index that multiplies sparse vectors
gives the same figures. Frequencies and the average length are ours, of one collection, and stay frozen for a
generation: a store's own IDF counts per shard, mixes tenants, and differs between stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoders.types import SparseVector, TermCounts

K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class Bm25Statistics:
    """What BM25 knows of a collection: how many texts, how long on average, how many hold each term."""

    document_count: int
    average_length: float  # words; 0.0 for an empty collection
    terms: NDArray[np.uint32]  # [terms], strictly increasing
    document_frequencies: NDArray[np.uint32]  # [terms]

    def idf(self, terms: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Returns ln(1 + (N - df + 0.5) / (df + 0.5)) of each term, never negative; an unseen term has df 0."""
        frequency = np.zeros(len(terms), dtype=np.float64)
        if len(self.terms):
            position = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
            seen = self.terms[position] == terms
            frequency[seen] = self.document_frequencies[position[seen]]
        total = max(float(self.document_count), float(frequency.max(initial=0.0)))
        return np.log1p((total - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)

    def weights(self, counts: NDArray[np.uint16], lengths: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average_length)) of each entry, float32."""
        relative = lengths / self.average_length if self.average_length else np.ones(len(lengths))
        norm = (K1 * (1.0 - B + B * relative)).astype(np.float32)
        frequency = counts.astype(np.float32)
        return (frequency * np.float32(K1 + 1.0) / (frequency + norm)).astype(np.float32)

    def upper_bound(self, query: SparseVector) -> float:
        """Returns the score that no document can reach: every query term saturated."""
        return upper_bound(query)

    def collected(self, texts: Iterable[TermCounts]) -> Bm25Statistics:
        """Returns the statistics of these texts."""
        return collect_statistics(texts)

    def counted(
        self, lengths: NDArray[np.int64], entry_terms: NDArray[np.uint32], counts: NDArray[np.uint16]
    ) -> Bm25Statistics:
        """Returns the same of texts given as entries."""
        del counts
        terms, frequencies = np.unique(entry_terms, return_counts=True)
        average = float(lengths.sum()) / len(lengths) if len(lengths) else 0.0
        return Bm25Statistics(len(lengths), average, terms.astype(np.uint32), frequencies.astype(np.uint32))

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Returns what a file keeps."""
        return {
            "document_count": np.array(self.document_count),
            "average_length": np.array(self.average_length),
            "terms": self.terms,
            "document_frequencies": self.document_frequencies,
        }


NO_STATISTICS = Bm25Statistics(0, 0.0, np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32))


def collect_statistics(texts: Iterable[TermCounts]) -> Bm25Statistics:
    """Counts a collection. Holds one integer an occurrence-in-text at most for 4 million of them, then folds."""
    count, length = 0, 0
    terms = np.empty(0, dtype=np.uint32)
    frequencies = np.empty(0, dtype=np.uint32)
    waiting: list[NDArray[np.uint32]] = []
    waiting_terms = 0
    for text in texts:
        count += 1
        length += text.length
        waiting.append(text.terms)
        waiting_terms += len(text.terms)
        if waiting_terms > 4_000_000:
            terms, frequencies = _fold(terms, frequencies, waiting)
            waiting, waiting_terms = [], 0
    terms, frequencies = _fold(terms, frequencies, waiting)
    return Bm25Statistics(count, length / count if count else 0.0, terms, frequencies)


def query_vector(text: TermCounts, statistics: Bm25Statistics) -> SparseVector:
    """Returns the IDF of each distinct term of the query; repeating a word in a question does not raise its weight."""
    return SparseVector(text.terms, statistics.idf(text.terms))


def upper_bound(query: SparseVector) -> float:
    """Returns the BM25 score that no document can reach: every query term saturated. 0.0 for a query without terms."""
    return float(query.values.sum(dtype=np.float64) * (K1 + 1.0))


def _fold(
    terms: NDArray[np.uint32], frequencies: NDArray[np.uint32], waiting: list[NDArray[np.uint32]]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    if not waiting:
        return terms, frequencies
    new_terms, new_counts = np.unique(np.concatenate(waiting), return_counts=True)
    merged = np.union1d(terms, new_terms)
    total = np.zeros(len(merged), dtype=np.uint32)
    total[np.searchsorted(merged, terms)] += frequencies
    total[np.searchsorted(merged, new_terms)] += new_counts.astype(np.uint32)
    return merged, total
