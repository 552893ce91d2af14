"""How an adapter asks: the options in plain values, and the request that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.v1 import common_pb2 as common
from headrace.v1 import retrieval_pb2 as retrieval
from indexers.errors import InvalidInput
from retrieval.adapters.errors import invalid
from retrieval.client import filter_message, retrieve_request


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Overrides of the server's thresholds, within its bounds; what is None stays as it is configured there.

    `candidates` are asked of each branch, `rerank_depth` of them are reranked, and hits below `min_score` are left out.
    """

    mode: Literal["hybrid", "dense", "sparse"] | None = None
    fusion: Literal["convex", "rrf"] | None = None
    dense_weight: float | None = None
    candidates: int | None = None
    rerank: bool | None = None
    rerank_depth: int | None = None
    min_score: float | None = None
    cache: bool | None = None


def search_request(
    collection: str,
    query: str,
    *,
    top_k: int | None,
    filters: Sequence[str | common.Filter | None],
    options: SearchOptions | None,
) -> retrieval.RetrieveRequest:
    """Returns the request for a question; of several filters all must hold, and those that are None restrict nothing.

    Raises:
        HeadraceError: the text of a filter does not parse.
    """
    try:
        given = [message for each in filters if (message := filter_message(each)) is not None]
    except InvalidInput as error:
        raise invalid(error.field, error.bound, str(error)) from error
    return retrieve_request(collection, query, top_k=top_k, filter=_all_of(given), options=_message(options))


def _all_of(filters: Sequence[common.Filter]) -> common.Filter | None:
    if len(filters) < 2:
        return filters[0] if filters else None
    return common.Filter(must=[common.Condition(filter=each) for each in filters])


def _message(options: SearchOptions | None) -> retrieval.RetrievalOptions | None:
    if options is None:
        return None
    return retrieval.RetrievalOptions(
        mode=retrieval.SearchMode.Value(f"SEARCH_MODE_{(options.mode or 'unspecified').upper()}"),
        fusion=retrieval.FusionMethod.Value(f"FUSION_METHOD_{(options.fusion or 'unspecified').upper()}"),
        dense_weight=options.dense_weight,
        candidates=options.candidates,
        rerank=options.rerank,
        rerank_depth=options.rerank_depth,
        min_score=options.min_score,
        cache=options.cache,
    )
