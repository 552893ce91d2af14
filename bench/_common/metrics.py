"""The ranking metrics, as trec_eval computes them: linear gain, logarithm of base 2, relevant means a grade above 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NDCG_CUT = 10
MRR_CUT = 10
RECALL_CUT = 100


@dataclass(frozen=True, slots=True)
class QueryMetrics:
    """How well one ranking answers one question; each from 0 to 1."""

    ndcg: float
    mrr: float
    recall: float


def judge(ranking: Sequence[str], relevant: Mapping[str, int]) -> QueryMetrics:
    """Returns the metrics of a ranking of document ids, best first."""
    return QueryMetrics(
        ndcg=ndcg(ranking, relevant, NDCG_CUT),
        mrr=reciprocal_rank(ranking, relevant, MRR_CUT),
        recall=recall(ranking, relevant, RECALL_CUT),
    )


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], cut: int) -> float:
    """Returns the discounted gain of the first `cut` over the best possible one (Jarvelin and Kekalainen, 2002)."""
    gains = [max(0, relevant.get(document_id, 0)) for document_id in ranking[:cut]]
    ideal = sorted((grade for grade in relevant.values() if grade > 0), reverse=True)[:cut]
    best = _discounted(ideal)
    return _discounted(gains) / best if best else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, int], cut: int) -> float:
    """Returns 1 / rank of the first relevant document within the first `cut`, 0 without one."""
    for rank, document_id in enumerate(ranking[:cut], 1):
        if relevant.get(document_id, 0) > 0:
            return 1.0 / rank
    return 0.0


def recall(ranking: Sequence[str], relevant: Mapping[str, int], cut: int) -> float:
    """Returns the share of the relevant documents that are among the first `cut`."""
    wanted = {document_id for document_id, grade in relevant.items() if grade > 0}
    return len(wanted.intersection(ranking[:cut])) / len(wanted) if wanted else 0.0


def best_documents(document_ids: Sequence[str]) -> list[str]:
    """Returns each document once, at the place of its best chunk; takes the documents of chunks in their order."""
    return list(dict.fromkeys(document_ids))


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
