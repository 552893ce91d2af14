"""`headrace models check`: the full check of a folder, and its outcome in the folder's record."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from encoders.catalog.checking import check_files
from encoders.catalog.folders import fresh_record, onnx_files
from encoders.catalog.opening import OpenPairs, dim_of
from encoders.catalog.record import (
    CheckFigures,
    ModelRecord,
    Precision,
    marks,
    now,
    read_record,
    require_unchanged,
    tool,
    write_record,
)
from encoders.errors import ModelUnsupported
from encoders.sources import BUNDLED_PREFIX


def check_recorded(
    folder: Path, model: str, open_pairs: OpenPairs, *, trusting: bool = False
) -> dict[Precision, CheckFigures]:
    """Compares a folder's files with their hashes and its references, and notes the outcome in its record.

    A folder without a record stays without; `trusting` makes one, or renews the hashes of all files. The package's own
    models, and a folder that may not be written, keep what they say.

    Raises:
        ModelCheckFailed: a recorded file changed, or there are no references that can be used.
        ModelNotFound, ModelUnsupported: it cannot be opened.
    """
    record = _known(folder, model) if trusting else read_record(folder, model)
    if record is not None and not trusting:
        require_unchanged(folder, record, model)
    figures = check_files(folder, model, open_pairs)
    if trusting:
        fresh = fresh_record(folder, model, "", dim_of(folder, model, next(iter(onnx_files(folder).values()))))
        record = fresh if record is None else replace(record, files=marks(folder))
    own = trusting or not model.startswith(BUNDLED_PREFIX)
    if record is not None and own and os.access(folder, os.W_OK):
        write_record(folder, replace(record, checks=figures, tool=tool(), made_at=now()))
    return figures


def _known(folder: Path, model: str) -> ModelRecord | None:
    try:
        return read_record(folder, model)
    except ModelUnsupported:
        return None  # an unreadable record is what trusting is for
