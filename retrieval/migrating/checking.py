"""What is measured before a collection changes over: whether searches find what is nearest, and what answers.

The graph that was built is compared with brute force over the same vectors, on the beginnings of passages as questions.
Labelled questions are asked of what serves and of what was built, with the fusion that requests have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from encoders.bm25 import Bm25Statistics, query_vector
from encoders.sparse import AsyncSparseEncoder
from encoders.term_statistics import TermStatistics
from encoders.terms import count_terms
from encoders.types import AsyncDenseEncoder, SparseVector
from indexers.migrating.migration import Built, Searched
from indexers.types import Candidates, SearchQuery
from rerank.ndcg import ndcg
from retrieval.errors import MigrationRefused
from retrieval.fuse import fuse
from retrieval.migrating.types import Bounds, CheckReport, LabelledQuestion
from retrieval.types import Thresholds

_SAMPLE = 100
_BEST = 10
_QUESTION_WORDS = 12
_KEPT = 100  # chunks of a labelled question's ranking; ten documents are looked for in them


class Asker:
    """Asks questions of what can be searched, as requests do: both branches, fused."""

    def __init__(
        self, encoder: AsyncDenseEncoder, sparse: AsyncSparseEncoder | None, thresholds: Callable[[], Thresholds]
    ) -> None:
        """`encoder` is of the vectors that are searched; `thresholds` gives those in force."""
        self._encoder = encoder
        self._sparse = sparse
        self._thresholds = thresholds

    async def recall(self, built: Built) -> CheckReport:
        """Returns the share of the exact ten best that searches of what was built find."""
        shares = []
        for text in await built.texts(_SAMPLE):
            outcome = await self._encoder.encode_query(" ".join(text.split()[:_QUESTION_WORDS]), None)
            if outcome.value is None:
                continue
            queries = [SearchQuery(outcome.value.vector, None, _BEST, exact) for exact in (True, False)]
            exact, found = [await built.search(query) for query in queries]
            shares.append(share_found(exact, found))
        return CheckReport(float(np.mean(shares)) if shares else 1.0, len(shares))

    async def ndcg(self, where: Searched, questions: Sequence[LabelledQuestion]) -> float:
        """Returns the mean nDCG@10 of the questions, over documents."""
        return float(np.mean([ndcg(await self._ranking(where, one.query), one.relevance) for one in questions]))

    async def _ranking(self, where: Searched, question: str) -> list[str]:
        outcome = await self._encoder.encode_query(question, None)
        sparse, thresholds = await self._weights(where.statistics, question), self._thresholds()
        dense = None if outcome.value is None else outcome.value.vector
        candidates = await where.search(SearchQuery(dense, sparse, thresholds.candidates))
        bound = 0.0 if sparse is None else where.statistics.upper_bound(sparse)
        fused = fuse(candidates, thresholds, bound, _KEPT)
        return list(dict.fromkeys(await where.documents_of([one.chunk_id for one in fused])))

    async def _weights(self, statistics: TermStatistics, question: str) -> SparseVector | None:
        if isinstance(statistics, Bm25Statistics):
            return query_vector(count_terms(question), statistics)
        return None if self._sparse is None else (await self._sparse.encode_query(question, None)).value


def judge(collection: str, report: CheckReport, bounds: Bounds) -> None:
    """Refuses what must not serve.

    Raises:
        MigrationRefused: says what was measured, and the bound.
    """
    if report.recall < bounds.min_recall:
        found = f"searches find {report.recall:.3f} of the ten nearest, and {bounds.min_recall} is the least"
        raise MigrationRefused(collection, f"{found}; raise index.hnsw_ef, or accept it with a lower bound")
    if report.ndcg_before is None or report.ndcg_after is None:
        return
    if report.ndcg_before - report.ndcg_after > bounds.max_ndcg_loss:
        fell = f"nDCG@10 would fall from {report.ndcg_before:.3f} to {report.ndcg_after:.3f}"
        raise MigrationRefused(
            collection, f"{fell}, and {bounds.max_ndcg_loss} is the most; accept it with a higher bound"
        )


def share_found(exact: Candidates, found: Candidates) -> float:
    """Returns how much of what is nearest was found; passages that are as near as the last one count as it."""
    if not exact.chunk_ids:
        return 1.0
    last = exact.dense_scores.min()
    near = found.dense_scores >= last - 1e-6
    return min(1.0, float(near.sum()) / len(exact.chunk_ids))
