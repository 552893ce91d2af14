"""Term counts by term, for scoring BM25 by brute force: every posting of every query term, nothing skipped.

Raw counts are kept beside the weights, so the same postings can be weighed again when the statistics change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from encoders.bm25 import K1, B, Bm25Statistics
from encoders.types import SparseVector, TermCounts
from indexers.scoring import sparse_scores


@dataclass(frozen=True, slots=True)
class Postings:
    """Entries sorted by term, then by owner; `starts[i]` is where term i's entries begin."""

    lengths: NDArray[np.int64]  # [owners], in words
    terms: NDArray[np.uint32]  # [terms], strictly increasing
    starts: NDArray[np.int64]  # [terms + 1]
    owners: NDArray[np.int64]  # [entries], positions from 0
    counts: NDArray[np.uint16]  # [entries]
    weights: NDArray[np.float32]  # [entries]

    def scores(self, query: SparseVector) -> NDArray[np.float64]:
        """Returns the BM25 score float64 [owners] of every text; 0 for a text without a query term."""
        found = np.flatnonzero(np.isin(self.terms, query.indices, assume_unique=True))
        if not len(found):
            return np.zeros(len(self.lengths))
        spans = [slice(self.starts[one], self.starts[one + 1]) for one in found]
        entry_terms = np.repeat(self.terms[found], self.starts[found + 1] - self.starts[found])
        owners = np.concatenate([self.owners[span] for span in spans])
        weights = np.concatenate([self.weights[span] for span in spans])
        return sparse_scores(owners, entry_terms, weights, query, len(self.lengths))

    def weighed(self, statistics: Bm25Statistics) -> Postings:
        """Returns the postings with the weights that the statistics give."""
        return replace(self, weights=_weights(self.counts, self.lengths[self.owners], statistics.average_length))

    def entry_terms(self) -> NDArray[np.uint32]:
        """Returns the term uint32 [entries] of each entry."""
        return np.repeat(self.terms, np.diff(self.starts))


def build_postings(texts: Sequence[TermCounts], statistics: Bm25Statistics) -> Postings:
    """Turns texts into postings; a text's owner is its position."""
    sizes = [len(text.terms) for text in texts]
    return _sorted_postings(
        lengths=np.array([text.length for text in texts], dtype=np.int64),
        entry_terms=np.concatenate([text.terms for text in texts] or [np.empty(0, dtype=np.uint32)]),
        owners=np.repeat(np.arange(len(texts), dtype=np.int64), sizes),
        counts=np.concatenate([text.counts for text in texts] or [np.empty(0, dtype=np.uint16)]),
        statistics=statistics,
    )


def join_postings(parts: Sequence[Postings], kept: Sequence[NDArray[np.bool_]], statistics: Bm25Statistics) -> Postings:
    """Joins postings one after another, keeping only some owners of each; owners are numbered anew."""
    first = 0
    entry_terms, owners, counts = [], [], []
    for part, keep in zip(parts, kept, strict=True):
        number = np.cumsum(keep) - 1 + first
        entries = keep[part.owners]
        entry_terms.append(part.entry_terms()[entries])
        owners.append(number[part.owners[entries]])
        counts.append(part.counts[entries])
        first += int(keep.sum())
    return _sorted_postings(
        lengths=np.concatenate([part.lengths[keep] for part, keep in zip(parts, kept, strict=True)]),
        entry_terms=np.concatenate(entry_terms),
        owners=np.concatenate(owners),
        counts=np.concatenate(counts),
        statistics=statistics,
    )


def count_statistics(parts: Sequence[Postings], kept: Sequence[NDArray[np.bool_]]) -> Bm25Statistics:
    """Counts the kept owners as one collection."""
    lengths = np.concatenate(
        [part.lengths[keep] for part, keep in zip(parts, kept, strict=True)] or [np.empty(0, dtype=np.int64)]
    )
    entry_terms = [part.entry_terms()[keep[part.owners]] for part, keep in zip(parts, kept, strict=True)]
    terms, frequencies = np.unique(np.concatenate(entry_terms or [np.empty(0, dtype=np.uint32)]), return_counts=True)
    average = float(lengths.sum()) / len(lengths) if len(lengths) else 0.0
    return Bm25Statistics(len(lengths), average, terms.astype(np.uint32), frequencies.astype(np.uint32))


def _sorted_postings(
    lengths: NDArray[np.int64],
    entry_terms: NDArray[np.uint32],
    owners: NDArray[np.int64],
    counts: NDArray[np.uint16],
    statistics: Bm25Statistics,
) -> Postings:
    order = np.argsort(entry_terms, kind="stable")
    entry_terms, owners, counts = entry_terms[order], owners[order], counts[order]
    terms, starts = np.unique(entry_terms, return_index=True)
    return Postings(
        lengths=lengths,
        terms=terms.astype(np.uint32),
        starts=np.append(starts, len(entry_terms)).astype(np.int64),
        owners=owners,
        counts=counts,
        weights=_weights(counts, lengths[owners], statistics.average_length),
    )


def _weights(counts: NDArray[np.uint16], lengths: NDArray[np.int64], average_length: float) -> NDArray[np.float32]:
    """Computes `encoders.bm25.document_vector` for the entries of many texts at once, to the same bits."""
    relative = lengths / average_length if average_length else np.ones(len(lengths))
    norm = (K1 * (1.0 - B + B * relative)).astype(np.float32)
    frequency = counts.astype(np.float32)
    return (frequency * np.float32(K1 + 1.0) / (frequency + norm)).astype(np.float32)
