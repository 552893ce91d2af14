"""Models in use, as `GetInfo` shows them."""

from __future__ import annotations

from dataclasses import dataclass

from encoders.calibration import Calibration
from encoders.catalog.record import CheckFigures
from encoders.curve import CostCurve
from encoders.variants import Choice
from headrace.v1 import admin_pb2


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model in use; `dim` is 0 for a cross-encoder."""

    role: str
    model_id: str
    revision: str
    dim: int
    max_tokens: int
    choice: Choice | None
    calibration: Calibration | None


def model_to_pb(model: ServedModel, ns_per_token: float) -> admin_pb2.ModelInfo:
    """Returns a model with what is known of it by now; `ns_per_token` is 0 until it has run."""
    info = admin_pb2.ModelInfo(
        role=model.role,
        model=model.model_id,
        revision=model.revision,
        dim=model.dim,
        max_tokens=model.max_tokens,
        ns_per_token=round(ns_per_token),
    )
    if model.choice is not None:
        info.file, info.precision = model.choice.file, model.choice.precision
        info.int8_speed = model.choice.int8_speed or 0.0
        if model.choice.figures is not None:
            info.check.CopyFrom(_check(model.choice.figures))
    if model.calibration is not None and model.calibration.curve is not None:
        info.pieces.CopyFrom(_pieces(model.calibration.curve))
    return info


def _check(figures: CheckFigures) -> admin_pb2.ModelCheck:
    return admin_pb2.ModelCheck(
        reference_count=figures.reference_count,
        lowest_cosine=figures.lowest_cosine or 0.0,
        mean_cosine=figures.mean_cosine or 0.0,
        pearson=figures.pearson or 0.0,
        rank_agreement=figures.rank_agreement,
    )


def _pieces(curve: CostCurve) -> admin_pb2.Pieces:
    costs = [
        admin_pb2.TokenCost(tokens=one.tokens, texts=one.texts, ns_per_token=round(one.ns_per_token))
        for one in (*curve.single, *curve.batched)
    ]
    return admin_pb2.Pieces(
        budget_tokens=curve.policy.budget_tokens, longest_tokens=curve.policy.longest_tokens, costs=costs
    )
