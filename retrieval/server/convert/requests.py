"""Questions: protobuf messages to checked requests, with their thresholds resolved against the settings in force."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from headrace.v1 import retrieval_pb2
from indexers.errors import InvalidInput
from retrieval.caching.policy import may_cache
from retrieval.errors import InvalidRequest
from retrieval.scope import Identity
from retrieval.server.convert.conversations import (
    checked_instructions,
    checked_session,
    priority_from_pb,
    tools_from_pb,
    turns_from_pb,
)
from retrieval.server.convert.filters import filter_from_pb
from retrieval.server.convert.texts import checked_key, checked_query
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import CacheControl, Fusion, GenerateRequest, Mode, RetrieveRequest

Choice = TypeVar("Choice")

MAX_OUTPUT_TOKENS = 1_000_000
MAX_TEMPERATURE = 2.0
_MODES: Mapping[int, Mode | None] = {
    retrieval_pb2.SEARCH_MODE_UNSPECIFIED: None,
    retrieval_pb2.SEARCH_MODE_HYBRID: Mode.HYBRID,
    retrieval_pb2.SEARCH_MODE_DENSE: Mode.DENSE,
    retrieval_pb2.SEARCH_MODE_SPARSE: Mode.SPARSE,
}
_FUSIONS: Mapping[int, Fusion | None] = {
    retrieval_pb2.FUSION_METHOD_UNSPECIFIED: None,
    retrieval_pb2.FUSION_METHOD_CONVEX: Fusion.CONVEX,
    retrieval_pb2.FUSION_METHOD_RRF: Fusion.RRF,
}


def retrieve_request_from_pb(
    message: retrieval_pb2.RetrieveRequest, identity: Identity, request_id: str, settings: Settings
) -> RetrieveRequest:
    """Returns the checked question.

    Raises:
        InvalidRequest, InvalidName: names the field and the bound.
        RerankerMissing: a rerank is asked for and no cross-encoder is configured.
    """
    key = checked_key(identity.tenant, message.collection)
    query = checked_query(message.query)
    thresholds = resolve(settings, _overrides(message))
    if not may_cache(settings.cache.policies, key.tenant, key.collection):
        thresholds = replace(thresholds, use_cache=False)
    return RetrieveRequest(
        request_id=request_id,
        tenant=key.tenant,
        collection=key.collection,
        query=query,
        filter=filter_from_pb(message.filter) if message.HasField("filter") else None,
        thresholds=thresholds,
        cache_control=_cache_control(message.cache_control),
        data_policy=identity.data_policy,
        turns=turns_from_pb(message.history),
    )


def generate_request_from_pb(
    message: retrieval_pb2.GenerateRequest, identity: Identity, request_id: str, settings: Settings
) -> GenerateRequest:
    """Returns the checked question with what shapes the answer.

    Raises:
        InvalidRequest, InvalidName: names the field and the bound.
        RerankerMissing: a rerank is asked for and no cross-encoder is configured.
    """
    try:
        retrieve = retrieve_request_from_pb(message.retrieve, identity, request_id, settings)
    except (InvalidRequest, InvalidInput) as error:
        raise type(error)(f"retrieve.{error.field}", error.bound, str(error)) from None
    generation = settings.generation
    output = message.max_output_tokens if message.HasField("max_output_tokens") else generation.max_output_tokens
    temperature = message.temperature if message.HasField("temperature") else generation.temperature
    if not 1 <= output <= MAX_OUTPUT_TOKENS:
        raise _outside("max_output_tokens", output, f"1..{MAX_OUTPUT_TOKENS}")
    if not (math.isfinite(temperature) and 0.0 <= temperature <= MAX_TEMPERATURE):
        raise _outside("temperature", temperature, f"0..{MAX_TEMPERATURE}")
    if not (math.isfinite(message.max_cost) and message.max_cost >= 0.0):
        raise _outside("max_cost", message.max_cost, "0 or more")
    return GenerateRequest(
        retrieve=retrieve,
        backend=message.backend or generation.default_backend,
        max_output_tokens=output,
        temperature=temperature,
        instructions=checked_instructions(message.instructions),
        tools=tools_from_pb(message.tools) if message.HasField("tools") else None,
        session=checked_session(message.session),
        priority=priority_from_pb(message.priority),
        max_cost=message.max_cost,
    )


def _overrides(message: retrieval_pb2.RetrieveRequest) -> Overrides:
    options = message.options
    return Overrides(
        top_k=message.top_k if message.HasField("top_k") else None,
        mode=_choice(_MODES, options.mode, "options.mode"),
        fusion=_choice(_FUSIONS, options.fusion, "options.fusion"),
        dense_weight=options.dense_weight if options.HasField("dense_weight") else None,
        candidates=options.candidates if options.HasField("candidates") else None,
        rerank=options.rerank if options.HasField("rerank") else None,
        rerank_depth=options.rerank_depth if options.HasField("rerank_depth") else None,
        min_score=options.min_score if options.HasField("min_score") else None,
        context_tokens=options.context_tokens if options.HasField("context_tokens") else None,
        cache=options.cache if options.HasField("cache") else None,
    )


def _cache_control(message: retrieval_pb2.CacheControl) -> CacheControl:
    max_age_s = message.max_age_s if message.HasField("max_age_s") else None
    if max_age_s is not None and not (math.isfinite(max_age_s) and max_age_s >= 0.0):
        raise _outside("cache_control.max_age_s", max_age_s, "0 or more")
    if message.no_cache and message.only_if_cached:
        raise InvalidRequest(
            "cache_control", "not both", "cache_control.no_cache and only_if_cached exclude each other; set one"
        )
    return CacheControl(message.no_cache, message.no_store, message.only_if_cached, max_age_s)


def _choice(choices: Mapping[int, Choice], number: int, field: str) -> Choice:
    if number not in choices:
        raise _outside(field, number, "one of the declared values")
    return choices[number]


def _outside(field: str, asked: float, bound: str) -> InvalidRequest:
    return InvalidRequest(field, bound, f"{field} is {asked:g}; it must be {bound}")
