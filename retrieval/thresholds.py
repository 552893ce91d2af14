"""Resolves what one request asks for against the settings: every override is checked against its configured bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from rerank.calibrate import Mixture
from rerank.stopping import Line, StopRule
from retrieval.errors import InvalidRequest, RerankerMissing
from retrieval.settings import Settings
from retrieval.settings.engines import AnytimeSettings
from retrieval.settings.service import ContextSettings
from retrieval.types import Expansion, Fusion, Mode, PassageBounds, Thresholds

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Overrides:
    """What a request asks for; None keeps the configured value."""

    top_k: int | None = None
    mode: Mode | None = None
    fusion: Fusion | None = None
    dense_weight: float | None = None
    candidates: int | None = None
    rerank: bool | None = None
    rerank_depth: int | None = None
    min_score: float | None = None
    context_tokens: int | None = None
    cache: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _InForce:
    """Settings by their identity: whoever reloads makes new ones, and comparing all values would take longest."""

    settings: Settings

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InForce) and other.settings is self.settings

    def __hash__(self) -> int:
        return id(self.settings)


def resolve(settings: Settings, overrides: Overrides) -> Thresholds:
    """Returns the thresholds of one request, the same object for those that ask for the same.

    Raises:
        InvalidRequest: an override is outside its bounds.
        RerankerMissing: a rerank is asked for, and neither late interaction nor a cross-encoder is configured.
    """
    return _resolved(_InForce(settings), overrides)


@lru_cache(maxsize=256)
def _resolved(in_force: _InForce, overrides: Overrides) -> Thresholds:
    settings = in_force.settings
    retrieval, rerank, context = settings.retrieval, settings.rerank, settings.context
    top_k = _within("top_k", overrides.top_k, retrieval.top_k, 1, retrieval.max_top_k)
    candidates = _within(
        "options.candidates", overrides.candidates, max(retrieval.candidates, top_k), top_k, retrieval.max_candidates
    )
    can_rerank = rerank.late.enabled or bool(rerank.model)
    if overrides.rerank and not can_rerank:
        raise RerankerMissing
    wants_rerank = can_rerank and (rerank.enabled if overrides.rerank is None else overrides.rerank)
    return Thresholds(
        top_k=top_k,
        mode=overrides.mode or Mode(retrieval.mode),
        fusion=overrides.fusion or Fusion(retrieval.fusion),
        dense_weight=_within("options.dense_weight", overrides.dense_weight, retrieval.dense_weight, 0.0, 1.0),
        rrf_k=retrieval.rrf_k,
        candidates=candidates,
        min_score=_within("options.min_score", overrides.min_score, retrieval.min_score, -1.0, 2.0),
        rerank=wants_rerank,
        rerank_depth=_depth(settings, overrides, top_k, wants_rerank),
        rerank_deadline_share=rerank.deadline_share,
        late=rerank.late.enabled,
        mixture=Mixture(rerank.first_stage_weight, rerank.late.weight, rerank.cross_encoder_weight),
        gate_margin=rerank.anytime.gate_margin,
        stop_rule=stop_rule_of(rerank.anytime),
        context_tokens=_within(
            "options.context_tokens", overrides.context_tokens, context.budget_tokens, 16, context.max_budget_tokens
        ),
        duplicate_overlap=context.duplicate_overlap,
        passages=PassageBounds(context.min_passages, context.max_passages) if context.passages == "gap" else None,
        expansion=_expansion(context),
        use_cache=overrides.cache is not False,
    )


def _expansion(settings: ContextSettings) -> Expansion | None:
    if settings.expand == "none":
        return None
    return Expansion(settings.window_sentences if settings.expand == "window" else 0, settings.expand_tokens)


def stop_rule_of(settings: AnytimeSettings) -> StopRule:
    """Returns the stop rule that the settings describe."""
    lines = tuple(Line(line.intercept, line.slope, line.carry, line.margins) for line in settings.lines)
    return StopRule(settings.tolerance, lines)


def _depth(settings: Settings, overrides: Overrides, top_k: int, wants_rerank: bool) -> int:
    """All that is returned is reranked, so that the scores of a reply are of one kind."""
    rerank = settings.rerank
    depth = _within("options.rerank_depth", overrides.rerank_depth, rerank.depth, 1, rerank.max_depth)
    if wants_rerank and rerank.model:
        _within("top_k", top_k, top_k, 1, rerank.max_depth)
    return max(depth, top_k) if wants_rerank else depth


def _within(field: str, asked: Number | None, default: Number, low: Number, high: Number) -> Number:
    if asked is None:
        return default
    if not math.isfinite(asked) or not low <= asked <= high:
        raise InvalidRequest(field, f"{low}..{high}", f"{field} is {asked}; it must be from {low} to {high}")
    return asked
