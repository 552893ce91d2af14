"""The shapes of token vectors that are compared, and what is needed to make each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench._common.late.coders import Coder, coder_of
from encoders.dense import OnnxDenseEncoder
from encoders.late.fit import LateShape, fit_projections
from encoders.late.tokens import TokenProjection

_FITTED_BITS = 4  # any that the product has: the directions do not depend on them
_CURVE = (
    (384, (32, 8, 4, 2)),
    (240, (4, 2)),
    (192, (2,)),
    (128, (8, 4, 2)),
    (96, (4,)),
    (64, (4,)),
    (32, (4,)),
)
_PRUNED_BELOW = (0.4, 0.5)


@dataclass(frozen=True, slots=True)
class Variant:
    """One shape of a passage's token vectors."""

    dim: int
    bits: int  # of a dimension
    pooled: bool = True  # equal tokens have one vector
    least_weight: float = 0.0  # tokens that weigh less are left out; the weight of the rarest tokens is 1
    projection: str = "fitted"  # "fitted" by the tool, "shipped" with the model, or "none"

    @property
    def label(self) -> str:
        """What tells it from the others, in words."""
        marks = (
            "" if self.pooled else "all tokens",
            f"IDF >= {self.least_weight:g}" if self.least_weight else "",
            {"none": "raw states", "fitted": ""}.get(self.projection, self.projection),
        )
        return ", ".join([f"{self.dim} x {self.coding}", *filter(None, marks)])

    @property
    def coding(self) -> str:
        """What a number becomes, in words."""
        return {32: "float32", 8: "int8"}.get(self.bits, f"{self.bits} bits")


@dataclass(frozen=True, slots=True)
class Arm:
    """A variant with what makes its codes."""

    variant: Variant
    projection: TokenProjection
    coder: Coder


DEFAULT = Variant(LateShape().dim, LateShape().bits)


def full_precision(dim: int) -> Variant:
    """Returns what all are compared with: every dimension of every kept token, in 32 bits."""
    return Variant(dim, 32, pooled=False)


def variants(dim: int) -> list[Variant]:
    """Returns the variants to compare for a model of so many dimensions, full precision first."""
    curve = [Variant(size, bits) for size, codings in _CURVE if size <= dim for bits in codings]
    if dim < DEFAULT.dim:
        return [full_precision(dim), *curve]
    pruned = [replace(DEFAULT, least_weight=share) for share in _PRUNED_BELOW]
    unpooled = replace(DEFAULT, pooled=False)
    return [full_precision(dim), Variant(dim, 32, projection="none"), *curve, unpooled, *pruned]


def arms_of(
    encoder: OnnxDenseEncoder, passages: Sequence[str], chosen: Sequence[Variant], shipped: TokenProjection | None
) -> list[Arm]:
    """Fits a projection for each number of dimensions, on one run over the passages, and adds the shipped one.

    Raises:
        ModelUnsupported, ValueError: as `encoders.late.fit.fit_projection`.
    """
    dims = sorted({variant.dim for variant in chosen})
    projections = fit_projections(encoder, passages, [LateShape(dim, _FITTED_BITS) for dim in dims])
    fitted = dict(zip(dims, projections, strict=True))
    arms = [Arm(one, _projection(one, fitted[one.dim]), coder_of(one.dim, one.bits)) for one in chosen]
    if shipped is None:
        return arms
    codec = shipped.codec
    return [*arms, Arm(Variant(codec.dim, codec.bits, projection="shipped"), shipped, codec)]


def _projection(variant: Variant, fitted: TokenProjection) -> TokenProjection:
    if variant.projection != "none":
        return fitted
    states = len(fitted.center)
    return replace(fitted, projection=np.eye(states, dtype=np.float32), center=np.zeros(states, dtype=np.float32))
