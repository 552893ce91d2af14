"""Comparing a model's files with its references: the full check, of every text or pair, with figures to record.

The start-up check takes a few texts and a fraction of a second; this one takes all of them. A model without references
gets them from its own full-precision file, when it has one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from encoders.catalog.agreement import cosines, kendall_tau, neighbour_agreement, pearson
from encoders.catalog.folders import onnx_files, require_onnx_kind
from encoders.catalog.opening import OpenPairs, logits_of, open_pairs_of, open_texts, vectors_of
from encoders.catalog.record import CheckFigures, Precision
from encoders.catalog.references import (
    PAIRS,
    REFERENCE_FILE,
    TEXTS,
    PairReferences,
    TextReferences,
    read_pair_references,
    read_text_references,
    write_pair_references,
    write_text_references,
)
from encoders.errors import ModelCheckFailed, ModelNotFound, ModelUnsupported
from encoders.kinds import ModelKind

# What a file must reach; full precision differs from its references by rounding only. The bundled int8 bi-encoder
# reaches 0.983 and 0.92, an int8 cross-encoder of six layers 0.999 and 0.92: a saturated product costs far more.
_LOWEST_COSINE: dict[Precision, float] = {"fp32": 0.999, "int8": 0.97}
_LOWEST_PEARSON: dict[Precision, float] = {"fp32": 0.999, "int8": 0.98}
_LOWEST_RANK_AGREEMENT: dict[Precision, float] = {"fp32": 0.95, "int8": 0.75}


def check_files(folder: Path, model: str, open_pairs: OpenPairs) -> dict[Precision, CheckFigures]:
    """Compares each ONNX file of a folder with the references.

    Raises:
        ModelCheckFailed: there are no references that can be used.
        ModelNotFound, ModelUnsupported: it cannot be opened.
    """
    files = onnx_files(folder)
    require_onnx_kind(folder, model)
    if not files:
        raise ModelNotFound(model, "it has no ONNX file to check; run `headrace models export` on it")
    return {precision: check_file(folder, model, precision, open_pairs) for precision in files}


def check_file(folder: Path, model: str, precision: Precision, open_pairs: OpenPairs) -> CheckFigures:
    """Compares one of a folder's ONNX files with the references.

    Raises:
        ModelCheckFailed: there are no references that can be used.
        ModelNotFound, ModelUnsupported: it cannot be opened.
    """
    if require_onnx_kind(folder, model) is ModelKind.CROSS_ENCODER:
        return _check_pairs(folder, model, precision, open_pairs)
    return _check_texts(folder, model, precision)


def write_references(folder: Path, model: str, open_pairs: OpenPairs) -> None:
    """Writes the references of a folder, made by its own full-precision file.

    Raises:
        ModelNotFound, ModelUnsupported: it cannot be opened.
    """
    if require_onnx_kind(folder, model) is ModelKind.CROSS_ENCODER:
        write_pair_references(folder, _own_pairs(folder, model, open_pairs))
    else:
        write_text_references(folder, _own_texts(folder, model))


def require_passed(model: str, precision: Precision, figures: CheckFigures) -> None:
    """Refuses figures that did not pass.

    Raises:
        ModelCheckFailed: names them.
    """
    if not figures.passed:
        advice = "serve the full-precision file" if precision == "int8" else "make it again"
        raise ModelCheckFailed(model, f"its {precision} file {describe_figures(figures)}; {advice}")


def describe_figures(figures: CheckFigures) -> str:
    """Says figures in words."""
    likeness = (
        f"a cosine of {figures.lowest_cosine:.4f} at least and {figures.mean_cosine:.4f} on average"
        if figures.lowest_cosine is not None
        else f"a correlation of {figures.pearson:.4f}"
    )
    return f"agrees with its references to {likeness}, rank agreement {figures.rank_agreement:.3f}"


def _check_texts(folder: Path, model: str, precision: Precision) -> CheckFigures:
    references = read_text_references(folder, model) or _own_texts(folder, model)
    encoder = open_texts(folder, model, onnx_files(folder)[precision])
    if references.vectors.shape[1] != encoder.dim:
        raise ModelCheckFailed(model, f"{REFERENCE_FILE} is of another model; restore or remove it")
    found = vectors_of(encoder, references.texts)
    alike, order = cosines(references.vectors, found), neighbour_agreement(references.vectors, found)
    lowest = float(alike.min())
    passed = lowest >= _LOWEST_COSINE[precision] and order >= _LOWEST_RANK_AGREEMENT[precision]
    return CheckFigures(passed, len(found), order, lowest_cosine=lowest, mean_cosine=float(alike.mean()))


def _check_pairs(folder: Path, model: str, precision: Precision, open_pairs: OpenPairs) -> CheckFigures:
    references = read_pair_references(folder, model) or _own_pairs(folder, model, open_pairs)
    opened = open_pairs_of(folder, model, onnx_files(folder)[precision], open_pairs)
    found = logits_of(opened, references.pairs)
    scale, order = pearson(references.logits, found), kendall_tau(references.logits, found)
    passed = scale >= _LOWEST_PEARSON[precision] and order >= _LOWEST_RANK_AGREEMENT[precision]
    return CheckFigures(passed, len(found), order, pearson=scale)


def _own_texts(folder: Path, model: str) -> TextReferences:
    encoder = open_texts(folder, model, _full(folder, model))
    return TextReferences(TEXTS, vectors_of(encoder, TEXTS).astype(np.float32))


def _own_pairs(folder: Path, model: str, open_pairs: OpenPairs) -> PairReferences:
    opened = open_pairs_of(folder, model, _full(folder, model), open_pairs)
    return PairReferences(PAIRS, logits_of(opened, PAIRS))


def _full(folder: Path, model: str) -> str:
    file = onnx_files(folder).get("fp32")
    if file is None:
        raise ModelUnsupported(model, f"it has neither {REFERENCE_FILE} nor full-precision weights; export it again")
    return file
