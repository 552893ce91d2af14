"""The start-up check: a model must compute on this CPU what it computed in full precision elsewhere.

Quantized products saturate on some CPUs and not on others, without any error: similarities just come out wrong. A model
with a `reference.json` (`encoders.catalog.references`) is compared with it before it serves: a bi-encoder by the
cosine of each vector and by how texts rank each other, a cross-encoder by the correlation and the ranks of its logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np

from encoders.catalog.agreement import cosines, kendall_tau, neighbour_agreement, pearson
from encoders.catalog.opening import PairModel, logits_of, vectors_of
from encoders.catalog.record import CheckFigures, Precision
from encoders.catalog.references import (
    PAIRS,
    TEXTS,
    PairReferences,
    TextReferences,
    read_pair_references,
    read_text_references,
)
from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelCheckFailed
from encoders.models import ModelFiles

# What a file must reach; full precision differs from its references by rounding only. The bundled int8 bi-encoder
# reaches 0.983 and 0.90, an int8 cross-encoder of six layers 0.999 and 0.92: a saturated product costs far more.
LOWEST_COSINE: dict[Precision, float] = {"fp32": 0.999, "int8": 0.97}
LOWEST_PEARSON: dict[Precision, float] = {"fp32": 0.999, "int8": 0.98}
LOWEST_RANK_AGREEMENT: dict[Precision, float] = {"fp32": 0.95, "int8": 0.75}
_QUICK = 4  # texts or pairs of a check that every start can afford; too few to judge by ranks
_QUICK_SHARE = 0.5  # of the standard deviation of all logits

E = TypeVar("E")
P = TypeVar("P", bound=PairModel)
R = TypeVar("R")


class Check(Protocol[E, R]):
    """How models of one kind are opened and compared: `E` is an open model, `R` its references."""

    def open(self, files: ModelFiles) -> E:
        """Opens a model."""
        ...

    def read(self, folder: Path, model: str) -> R | None:
        """Reads the references beside a model; None when there are none."""
        ...

    def make(self, encoder: E) -> R:
        """Makes references by a model that is right by itself, the full-precision one."""
        ...

    def compare(self, encoder: E, references: R, precision: Precision, *, quick: bool = False) -> CheckFigures:
        """Says how far a model agrees; `quick` takes the shortest references only, too few to judge by their ranks."""
        ...


class TextCheck:
    """The `Check` of bi-encoders."""

    def open(self, files: ModelFiles) -> OnnxDenseEncoder:
        """Opens a model.

        Raises:
            ModelNotFound, ModelUnsupported: it cannot be opened, or is no bi-encoder.
        """
        return OnnxDenseEncoder.open(files)

    def read(self, folder: Path, model: str) -> TextReferences | None:
        """Reads the references beside a model.

        Raises:
            ModelCheckFailed: they cannot be used.
        """
        return read_text_references(folder, model)

    def make(self, encoder: OnnxDenseEncoder) -> TextReferences:
        """Computes the vectors of a few texts."""
        return TextReferences(TEXTS, vectors_of(encoder, TEXTS))

    def compare(
        self, encoder: OnnxDenseEncoder, references: TextReferences, precision: Precision, *, quick: bool = False
    ) -> CheckFigures:
        """Compares vectors.

        Raises:
            ModelCheckFailed: the references are those of another model.
        """
        if references.vectors.shape[1] != encoder.dim:
            raise ModelCheckFailed(encoder.model_id, "reference.json does not fit the model; restore or remove it")
        chosen = _shortest(references.texts) if quick else list(range(len(references.texts)))
        expected = references.vectors[chosen]
        found = vectors_of(encoder, [references.texts[position] for position in chosen])
        alike = cosines(expected, found)
        order = neighbour_agreement(expected, found)
        ranked = quick or order >= LOWEST_RANK_AGREEMENT[precision]
        passed = bool(alike.min() >= LOWEST_COSINE[precision]) and ranked
        return CheckFigures(
            passed, len(chosen), order, lowest_cosine=float(alike.min()), mean_cosine=float(alike.mean())
        )


class PairCheck(Generic[P]):
    """The `Check` of cross-encoders, which the package above this one opens."""

    def __init__(self, opened_by: Callable[[ModelFiles], P]) -> None:
        self.open = opened_by

    def read(self, folder: Path, model: str) -> PairReferences | None:
        """Reads the references beside a model.

        Raises:
            ModelCheckFailed: they cannot be used.
        """
        return read_pair_references(folder, model)

    def make(self, encoder: P) -> PairReferences:
        """Computes the logits of a few pairs."""
        return PairReferences(PAIRS, logits_of(encoder, PAIRS))

    def compare(
        self, encoder: P, references: PairReferences, precision: Precision, *, quick: bool = False
    ) -> CheckFigures:
        """Compares logits. A few neither correlate nor rank: these may be off by a share of how far all are apart."""
        chosen = _shortest([query + passage for query, passage in references.pairs]) if quick else slice(None)
        expected = references.logits[chosen]
        found = logits_of(encoder, np.array(references.pairs, dtype=object)[chosen].tolist())
        scale, order = pearson(expected, found), kendall_tau(expected, found)
        apart = float(references.logits.std()) or 1.0
        passed = (
            bool(np.abs(found - expected).mean() <= _QUICK_SHARE * apart)
            if quick
            else scale >= LOWEST_PEARSON[precision] and order >= LOWEST_RANK_AGREEMENT[precision]
        )
        return CheckFigures(passed, len(found), order, pearson=scale)


def require_passed(model: str, precision: Precision, figures: CheckFigures) -> None:
    """Refuses a model whose figures did not pass.

    Raises:
        ModelCheckFailed: names them.
    """
    if figures.passed:
        return
    likeness = (
        f"a correlation of {figures.pearson:.3f}"
        if figures.pearson is not None
        else f"a cosine of {figures.lowest_cosine or 0.0:.3f}"
    )
    reason = (
        f"its {precision} file agrees with the references to {likeness} and a rank agreement of "
        f"{figures.rank_agreement:.2f} only, on this CPU; use another export of it"
    )
    raise ModelCheckFailed(model, reason)


def _shortest(texts: Sequence[str]) -> list[int]:
    return sorted(range(len(texts)), key=lambda position: len(texts[position]))[:_QUICK]
