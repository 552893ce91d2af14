"""Term counts by term, for scoring the sparse branch by brute force: every posting of every query term, none skipped.

Raw counts are kept beside the weights, so the same postings can be weighed again when the statistics change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from encoders.term_statistics import TermStatistics
from encoders.types import SparseVector, TermCounts
from indexers.scoring import sparse_scores

T = TypeVar("T", bound=np.generic)


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
        """Returns the score float64 [owners] of every text; 0 for a text without a query term."""
        found = np.flatnonzero(np.isin(self.terms, query.indices, assume_unique=True))
        if not len(found):
            return np.zeros(len(self.lengths))
        spans = [slice(self.starts[one], self.starts[one + 1]) for one in found]
        entry_terms = np.repeat(self.terms[found], self.starts[found + 1] - self.starts[found])
        owners = np.concatenate([self.owners[span] for span in spans])
        weights = np.concatenate([self.weights[span] for span in spans])
        return sparse_scores(owners, entry_terms, weights, query, len(self.lengths))

    def weighed(self, statistics: TermStatistics) -> Postings:
        """Returns the postings with the weights that the statistics give."""
        return replace(self, weights=statistics.weights(self.counts, self.lengths[self.owners]))

    def entry_terms(self) -> NDArray[np.uint32]:
        """Returns the term uint32 [entries] of each entry."""
        return np.repeat(self.terms, np.diff(self.starts))


def build_postings(texts: Sequence[TermCounts], statistics: TermStatistics) -> Postings:
    """Turns texts into postings; a text's owner is its position."""
    sizes = [len(text.terms) for text in texts]
    return _sorted_postings(
        lengths=np.array([text.length for text in texts], dtype=np.int64),
        entry_terms=np.concatenate([text.terms for text in texts] or [np.empty(0, dtype=np.uint32)]),
        owners=np.repeat(np.arange(len(texts), dtype=np.int64), sizes),
        counts=np.concatenate([text.counts for text in texts] or [np.empty(0, dtype=np.uint16)]),
        statistics=statistics,
    )


def join_postings(parts: Sequence[Postings], kept: Sequence[NDArray[np.bool_]], statistics: TermStatistics) -> Postings:
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


def count_statistics(
    parts: Sequence[Postings], kept: Sequence[NDArray[np.bool_]], like: TermStatistics
) -> TermStatistics:
    """Counts the kept owners as one collection, in statistics of the kind of `like`."""
    entries = [keep[part.owners] for part, keep in zip(parts, kept, strict=True)]
    return like.counted(
        _joined([part.lengths[keep] for part, keep in zip(parts, kept, strict=True)], np.int64),
        _joined([part.entry_terms()[there] for part, there in zip(parts, entries, strict=True)], np.uint32),
        _joined([part.counts[there] for part, there in zip(parts, entries, strict=True)], np.uint16),
    )


def _joined(parts: list[NDArray[T]], kind: type[T]) -> NDArray[T]:
    return np.concatenate(parts or [np.empty(0, dtype=kind)])


def _sorted_postings(
    lengths: NDArray[np.int64],
    entry_terms: NDArray[np.uint32],
    owners: NDArray[np.int64],
    counts: NDArray[np.uint16],
    statistics: TermStatistics,
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
        weights=statistics.weights(counts, lengths[owners]),
    )
