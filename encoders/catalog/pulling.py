"""`headrace models pull`: a model of the Hugging Face hub as a folder of one's own, only the files that are needed.

What the hub's client fetched is compared with the hub's hashes, opened and run before the folder appears: a download
that broke off or a damaged file leaves nothing behind.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from encoders.catalog.checking import check_file, write_references
from encoders.catalog.folders import fresh_record, kind_in, onnx_files, require_onnx_kind
from encoders.catalog.opening import OpenPairs, dim_of, open_pairs_of
from encoders.catalog.record import CARD_FILE, ModelRecord, mark, write_record
from encoders.catalog.references import REFERENCE_FILE
from encoders.catalog.staging import copy_into, staged
from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.kinds import ModelKind
from encoders.selfcheck import require_passed
from encoders.sources import INT8, SETTINGS_FILES, ModelSource, is_hub_id

_STATIC_WEIGHTS = "model.safetensors"


def pull(model: str, revision: str, target: Path, open_pairs: OpenPairs) -> ModelRecord:
    """Fetches a model into `target`, which is replaced as a whole if it is there; `revision` "" is the main branch.

    Raises:
        ModelNotFound: the hub does not give it, or it has no ONNX file and must be exported.
        ModelUnsupported: a file is damaged, or it is no model that can be served.
        ModelCheckFailed: it does not compute what its references say.
        ModelNotWritten: the folder cannot be written, or no space is left.
    """
    if not is_hub_id(model):
        raise ModelNotFound(model, "that is no id of the hub; write it as owner/name")
    fetched, wanted = _fetch(model, revision)
    with staged(target, model, whole=True) as fresh:
        copy_into(fetched, fresh, matching(fetched, wanted))
        record = _record(fresh, model, fetched.name, open_pairs)
        write_record(fresh, record)
    return record


def fetch_verified(model: str, revision: str, patterns: tuple[str, ...]) -> Path:
    """Fetches files into the client's cache and compares them with the hub's hashes.

    Raises:
        ModelNotFound: the hub does not give them.
        ModelUnsupported: one is damaged.
    """
    # Imported here: the hub's client takes a third of a second, which no other command should pay.
    from encoders.hub import download, drop_damaged  # noqa: PLC0415

    folder = download(model, revision, patterns)
    damaged = drop_damaged(folder)
    if damaged:
        raise ModelUnsupported(model, f"{', '.join(damaged)} arrived damaged and was thrown away; fetch it again")
    return folder


def matching(folder: Path, patterns: tuple[str, ...]) -> list[str]:
    """Lists the files of a folder that match; the client's cache may hold more of a model than was asked for."""
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return [name for name in found if any(fnmatch(name, pattern) for pattern in patterns)]


def _fetch(model: str, revision: str) -> tuple[Path, tuple[str, ...]]:
    settings = (*SETTINGS_FILES, CARD_FILE)
    # Full precision first: other people's int8 files were made for other CPUs, and `quantize` makes one for this.
    for weights in (ModelSource(model).onnx_patterns(), ModelSource(model, INT8).onnx_patterns()):
        wanted = (*settings, *weights)
        folder = fetch_verified(model, revision, wanted)
        if any(name.endswith(".onnx") for name in matching(folder, wanted)):
            return folder, wanted
    if kind_in(folder, model) is not ModelKind.STATIC:
        require_onnx_kind(folder, model)
        raise ModelNotFound(model, f"it has no ONNX file; run `headrace models export {model}`")
    wanted = (*settings, _STATIC_WEIGHTS)
    return fetch_verified(model, revision, wanted), wanted


def _record(fresh: Path, model: str, revision: str, open_pairs: OpenPairs) -> ModelRecord:
    if kind_in(fresh, model) is ModelKind.STATIC:
        return fresh_record(fresh, model, revision, dim_of(fresh, model, ""))
    require_onnx_kind(fresh, model)
    precision, file = next(iter(onnx_files(fresh).items()))
    if kind_in(fresh, model) is ModelKind.CROSS_ENCODER:
        open_pairs_of(fresh, model, file, open_pairs)
    record = fresh_record(fresh, model, revision, dim_of(fresh, model, file))
    if precision != "fp32":  # there is nothing to compare it with
        return record
    write_references(fresh, model, open_pairs)
    figures = check_file(fresh, model, precision, open_pairs)
    require_passed(model, precision, figures)
    made = {REFERENCE_FILE: mark(fresh / REFERENCE_FILE)}
    return replace(record, files=record.files | made, checks={precision: figures})
