"""A request's overrides against the configured bounds."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from retrieval.errors import InvalidRequest, RerankerMissing
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Fusion, Mode


def test_thresholds_without_overrides_are_the_settings() -> None:
    """Nothing asked for, nothing changed."""
    thresholds = resolve(Settings(), Overrides())
    assert thresholds.top_k == Settings().retrieval.top_k
    assert thresholds.mode is Mode.HYBRID
    assert thresholds.fusion is Fusion.CONVEX
    assert thresholds.use_cache
    assert thresholds.rerank
    assert thresholds.late
    assert thresholds.rerank_depth == Settings().rerank.depth


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        (Overrides(top_k=0), "top_k"),
        (Overrides(top_k=10**9), "top_k"),
        (Overrides(dense_weight=1.5), "options.dense_weight"),
        (Overrides(dense_weight=math.nan), "options.dense_weight"),
        (Overrides(candidates=5), "options.candidates"),
        (Overrides(candidates=10**6), "options.candidates"),
        (Overrides(min_score=math.inf), "options.min_score"),
        (Overrides(context_tokens=1), "options.context_tokens"),
        (Overrides(rerank_depth=0), "options.rerank_depth"),
    ],
)
def test_thresholds_outside_their_bounds_are_refused(overrides: Overrides, field: str) -> None:
    """The error names the field and the bound."""
    with pytest.raises(InvalidRequest) as refused:
        resolve(Settings(), overrides)
    assert refused.value.field == field
    assert ".." in refused.value.bound


def test_thresholds_zero_is_a_value_and_not_unset() -> None:
    """An explicit zero is taken, as in case SEM-04."""
    thresholds = resolve(Settings(), Overrides(dense_weight=0.0, min_score=0.0))
    assert thresholds.dense_weight == 0.0
    assert thresholds.min_score == 0.0


def test_thresholds_candidates_are_never_fewer_than_top_k() -> None:
    """A large top_k raises the default number of candidates."""
    assert resolve(Settings(), Overrides(top_k=200)).candidates == 200


def test_thresholds_rerank_without_any_reranker_is_refused() -> None:
    """Asking for what is not there is an error, not a silent no; not asking is fine."""
    settings = Settings.model_validate({"rerank": {"late": {"enabled": False}}})
    with pytest.raises(RerankerMissing):
        resolve(settings, Overrides(rerank=True))
    assert not resolve(settings, Overrides()).rerank
    assert resolve(Settings(), Overrides(rerank=True)).rerank


def test_thresholds_rerank_depth_covers_what_is_returned() -> None:
    """All hits that are returned are reranked, so their scores are of one kind."""
    settings = Settings.model_validate({"rerank": {"model": "m", "enabled": True, "depth": 5}})
    assert resolve(settings, Overrides(top_k=30)).rerank_depth == 30
    with pytest.raises(InvalidRequest):
        resolve(settings, Overrides(top_k=150))
    assert resolve(Settings(), Overrides(top_k=150)).rerank_depth == 150


@pytest.mark.parametrize(
    "rerank",
    [
        {"depth": 101},
        {"first_stage_weight": 0.0, "late": {"weight": 0.0}},
        {"cross_encoder_weight": 0.0},
        {"anytime": {"lines": []}},
        {"anytime": {"lines": [{"margins": [1.0]}]}},
        {"anytime": {"lines": [{"margins": [0.0, 1.0, 2.0, 3.0, 2.0, 4.0, 5.0, 6.0]}]}},
    ],
)
def test_settings_that_cannot_rerank_are_refused(rerank: dict[str, object]) -> None:
    """A depth above its bound, weights of nothing, margins that fall or are too few."""
    with pytest.raises(ValidationError):
        Settings.model_validate({"rerank": rerank})
