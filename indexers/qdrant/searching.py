"""One search of a Qdrant server: both branches and both completions in one round trip."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qdrant_client import models

from indexers.qdrant.options import QdrantOptions
from indexers.qdrant.points import sparse_model
from indexers.qdrant.space import search_params
from indexers.types import Candidates, SearchQuery

_SEEN = ["document_id", "version"]


def search_requests(query: SearchQuery, condition: models.Filter, options: QdrantOptions) -> list[models.QueryRequest]:
    """Returns the branches that are asked, dense first; when both are, then each one's hits scored by the other."""
    params = search_params(options, query.limit, exact=query.exact)

    def branch(name: str, prefetch: models.Prefetch | None = None) -> models.QueryRequest:
        return models.QueryRequest(
            query=vectors[name],
            using=name,
            prefetch=prefetch,
            filter=condition,
            params=params if prefetch is None else search_params(options, query.limit, exact=query.exact, given=True),
            limit=query.limit,
            with_payload=False if prefetch else _SEEN,
        )

    def hits_of(name: str) -> models.Prefetch:
        return models.Prefetch(query=vectors[name], using=name, filter=condition, params=params, limit=query.limit)

    vectors: dict[str, list[float] | models.SparseVector] = {}
    if query.dense is not None:
        vectors["dense"] = query.dense.tolist()
    if query.sparse is not None:
        vectors["sparse"] = sparse_model(query.sparse)
    requests = [branch(name) for name in vectors]
    if len(vectors) == 2:
        requests += [branch("dense", hits_of("sparse")), branch("sparse", hits_of("dense"))]
    return requests


def candidates_of(query: SearchQuery, found: list[list[models.ScoredPoint]]) -> Candidates:
    """Reads the replies to `search_requests`; of a document that is being replaced only the newest version is left."""
    branches = iter(found)
    dense_hits = _newest(next(branches)) if query.dense is not None else []
    sparse_hits = _newest(next(branches)) if query.sparse is not None else []
    rescored = [{str(hit.id): hit.score for hit in hits} for hits in branches] or [{}, {}]
    dense = rescored[0] | {str(hit.id): hit.score for hit in dense_hits}
    sparse = rescored[1] | {str(hit.id): hit.score for hit in sparse_hits}
    ids = [str(hit.id) for hit in _newest([*dense_hits, *sparse_hits])]
    # A dense score is missing only when the point went away between the queries of the batch.
    ids = [one for one in dict.fromkeys(ids) if query.dense is None or one in dense]
    # A point that shares no term with the query is not returned by the sparse query: its product is zero.
    return Candidates(
        chunk_ids=tuple(ids),
        dense_scores=_scores(ids, dense, float("nan")),
        sparse_scores=_scores(ids, sparse, float("nan") if query.sparse is None else 0.0),
        dense_ranks=_ranks(ids, dense_hits),
        sparse_ranks=_ranks(ids, sparse_hits),
    )


def token_request(query: NDArray[np.float32], condition: models.Filter, limit: int) -> models.QueryRequest:
    """Returns the late interaction of a query's token vectors with all points that pass."""
    params = models.SearchParams(exact=True)
    return models.QueryRequest(
        query=query.tolist(), using="tokens", filter=condition, params=params, limit=limit, with_payload=False
    )


def token_scores(ids: list[str], found: list[models.ScoredPoint]) -> NDArray[np.float32]:
    """Reads the reply to `token_request`; NaN for a point that is gone or has no token vectors."""
    return _scores(ids, {str(hit.id): hit.score for hit in found}, float("nan"))


def _newest(hits: list[models.ScoredPoint]) -> list[models.ScoredPoint]:
    newest: dict[str, int] = {}
    for hit in hits:
        payload = hit.payload or {}
        newest[payload["document_id"]] = max(newest.get(payload["document_id"], 0), payload["version"])
    return [hit for hit in hits if hit.payload and hit.payload["version"] == newest[hit.payload["document_id"]]]


def _scores(ids: list[str], scores: dict[str, float], missing: float) -> np.ndarray:
    return np.array([scores.get(one, missing) for one in ids], dtype=np.float32)


def _ranks(ids: list[str], hits: list[models.ScoredPoint]) -> np.ndarray:
    kept = set(ids)
    ranked = {one: rank for rank, one in enumerate(str(hit.id) for hit in hits if str(hit.id) in kept)}
    return np.array([ranked.get(one, -1) for one in ids], dtype=np.int32)
