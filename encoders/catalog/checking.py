"""Comparing a model's files with its references: the full check, of every text or pair, with figures to record.

The start-up check takes a few texts and a fraction of a second; this one takes all of them, by the same bounds. A model
without references gets them from its own full-precision file, when it has one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from encoders.catalog.folders import files_of, onnx_files, require_onnx_kind
from encoders.catalog.opening import OpenPairs
from encoders.catalog.record import CheckFigures, Precision
from encoders.catalog.references import write_pair_references, write_text_references
from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.kinds import ModelKind
from encoders.selfcheck import Check, PairCheck, TextCheck

E = TypeVar("E")
R = TypeVar("R")


def check_files(folder: Path, model: str, open_pairs: OpenPairs) -> dict[Precision, CheckFigures]:
    """Compares each ONNX file of a folder with the references.

    Raises:
        ModelCheckFailed: there are no references that can be used.
        ModelNotFound, ModelUnsupported: it cannot be opened.
    """
    require_onnx_kind(folder, model)
    files = onnx_files(folder)
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
        return _compared(PairCheck(open_pairs), folder, model, precision)
    return _compared(TextCheck(), folder, model, precision)


def write_references(folder: Path, model: str, open_pairs: OpenPairs) -> None:
    """Writes the references of a folder, made by its own full-precision file.

    Raises:
        ModelNotFound, ModelUnsupported: it cannot be opened.
    """
    if require_onnx_kind(folder, model) is ModelKind.CROSS_ENCODER:
        write_pair_references(folder, _own(PairCheck(open_pairs), folder, model))
    else:
        write_text_references(folder, _own(TextCheck(), folder, model))


def _compared(check: Check[E, R], folder: Path, model: str, precision: Precision) -> CheckFigures:
    references = check.read(folder, model) or _own(check, folder, model)
    encoder = check.open(files_of(folder, model, onnx_files(folder)[precision]))
    return check.compare(encoder, references, precision)


def _own(check: Check[E, R], folder: Path, model: str) -> R:
    file = onnx_files(folder).get("fp32")
    if file is None:
        raise ModelUnsupported(model, "it has neither reference.json nor full-precision weights; export it again")
    return check.make(check.open(files_of(folder, model, file)))
