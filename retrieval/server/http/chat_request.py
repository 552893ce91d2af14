"""A chat completion as a message of our own API, so that both listeners check and resolve requests in one place."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.v1 import retrieval_pb2
from indexers.filter_text import parse_filter
from retrieval.server.convert.filters import filter_to_pb
from retrieval.server.http.chat_body import CacheControlBody, ChatBody, Extensions
from retrieval.server.http.chat_messages import asking
from retrieval.server.http.reply import compact

CHAT_NAMES: Mapping[str, str] = {
    "retrieve.query": "messages",
    "retrieve.collection": "model",
    "retrieve.history*": "messages",
    "retrieve.options": "headrace",
    "retrieve": "headrace",
    "collection": "model",
    "backend": "model",
    "filter": "headrace.filter",
    "max_output_tokens": "max_tokens",
    "instructions": "messages",
    "tools.definitions": "tools",
    "tools.choice": "tool_choice",
    "max_cost": "headrace.max_cost",
    "priority": "headrace.priority",
}
_MODES = {
    None: retrieval_pb2.SEARCH_MODE_UNSPECIFIED,
    "hybrid": retrieval_pb2.SEARCH_MODE_HYBRID,
    "dense": retrieval_pb2.SEARCH_MODE_DENSE,
    "sparse": retrieval_pb2.SEARCH_MODE_SPARSE,
}
_FUSIONS = {
    None: retrieval_pb2.FUSION_METHOD_UNSPECIFIED,
    "convex": retrieval_pb2.FUSION_METHOD_CONVEX,
    "rrf": retrieval_pb2.FUSION_METHOD_RRF,
}
_PRIORITIES = {
    None: retrieval_pb2.PRIORITY_UNSPECIFIED,
    "interactive": retrieval_pb2.PRIORITY_INTERACTIVE,
    "batch": retrieval_pb2.PRIORITY_BATCH,
}


def chat_to_pb(body: ChatBody) -> retrieval_pb2.GenerateRequest:
    """Returns the request as a message.

    Raises:
        InvalidRequest, FilterSyntax: names the field.
    """
    collection, _, backend = body.model.partition("@")
    ours, asked = body.headrace, asking(body.messages)
    retrieve = retrieval_pb2.RetrieveRequest(
        collection=collection,
        query=asked.question,
        top_k=ours.top_k,
        filter=None if ours.filter is None else filter_to_pb(parse_filter(ours.filter)),
        options=_options(ours),
        cache_control=_cache_control(ours.cache_control),
        history=asked.history,
    )
    return retrieval_pb2.GenerateRequest(
        retrieve=retrieve,
        backend=backend,
        max_output_tokens=body.output_tokens,
        temperature=body.temperature,
        instructions=asked.instructions,
        tools=_tools(body),
        session=body.session,
        priority=_PRIORITIES[ours.priority],
        max_cost=ours.max_cost,
    )


def _options(ours: Extensions) -> retrieval_pb2.RetrievalOptions:
    return retrieval_pb2.RetrievalOptions(
        mode=_MODES[ours.mode],
        fusion=_FUSIONS[ours.fusion],
        dense_weight=ours.dense_weight,
        candidates=ours.candidates,
        rerank=ours.rerank,
        rerank_depth=ours.rerank_depth,
        min_score=ours.min_score,
        context_tokens=ours.context_tokens,
        cache=ours.cache,
    )


def _cache_control(asked: CacheControlBody) -> retrieval_pb2.CacheControl:
    return retrieval_pb2.CacheControl(
        no_cache=asked.no_cache,
        no_store=asked.no_store,
        only_if_cached=asked.only_if_cached,
        max_age_s=asked.max_age_s,
    )


def _tools(body: ChatBody) -> retrieval_pb2.Tools | None:
    if not body.tools:
        return None
    choice = "" if body.tool_choice is None else compact(body.tool_choice)
    return retrieval_pb2.Tools(definitions=compact(body.tools), choice=choice)
