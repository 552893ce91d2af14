"""`headrace models quantize`: the int8 twin of a folder's full-precision file, checked before it is left there."""

from __future__ import annotations

import importlib.util
import platform
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from encoders.catalog.checking import check_file, write_references
from encoders.catalog.folders import fresh_record, onnx_files, require_onnx_kind
from encoders.catalog.opening import OpenPairs, dim_of
from encoders.catalog.record import (
    CheckFigures,
    ModelRecord,
    QuantizationFacts,
    mark,
    read_record,
    require_unchanged,
    write_record,
)
from encoders.catalog.references import REFERENCE_FILE
from encoders.catalog.staging import copy_into, staged
from encoders.errors import ExtraMissing, ModelNotFound, ModelUnsupported
from encoders.selfcheck import require_passed

_INT8_NAME = "model_int8.onnx"
_CPU = Path("/proc/cpuinfo")
# Instructions that add u8 x s8 products in 32 bits; those of Arm never saturate.
_EXACT = {"avx512_vnni", "avx_vnni", "asimddp"}


def multiplies_exactly(cpu: Path = _CPU) -> bool:
    """Whether this CPU adds products of 8-bit numbers without saturating, so that weights may use all of their bits."""
    try:
        words = set(cpu.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return platform.machine().lower() in {"arm64", "aarch64"}
    return bool(words & _EXACT)


def quantize_folder(folder: Path, model: str, open_pairs: OpenPairs, *, full_range: bool = False) -> ModelRecord:
    """Writes the int8 file beside the full-precision one, with its figures in the folder's record.

    `full_range` gives weights all 8 bits, for CPUs that multiply exactly; others would compute something else.

    Raises:
        ExtraMissing: the package that quantizes is not installed.
        ModelNotFound, ModelUnsupported: there is no full-precision file, or it cannot be quantized.
        ModelCheckFailed: a recorded file changed, or the int8 file is too far off; nothing was written.
        ModelNotWritten: the folder cannot be written, or no space is left.
    """
    if importlib.util.find_spec("onnx") is None:
        raise ExtraMissing("export", "onnx")
    if full_range and not multiplies_exactly():
        raise ModelUnsupported(model, "this CPU has no VNNI, full-range weights saturate on it; leave --full-range out")
    record = read_record(folder, model)
    if record is not None:
        require_unchanged(folder, record, model)
    source = _source(folder, model)
    target = (Path(source).parent / _INT8_NAME).as_posix()
    with staged(folder, model) as fresh:
        settings = [path.relative_to(folder).as_posix() for path in folder.rglob("*.json")]
        copy_into(folder, fresh, settings)  # what the check needs to see
        if not (fresh / REFERENCE_FILE).is_file():
            _write_references(folder, fresh, source, model, open_pairs)
        _quantize(folder / source, fresh / target, model, reduce_range=not full_range)
        figures = _checked(fresh, model, open_pairs)
        known = record or fresh_record(folder, model, "", dim_of(folder, model, source))
        record = replace(
            known,
            files=known.files | {name: mark(fresh / name) for name in (target, REFERENCE_FILE)},
            quantization=QuantizationFacts("int8", True, not full_range, version("onnxruntime")),
            checks={**known.checks, "int8": figures},
        )
        for name in settings:
            (fresh / name).unlink()
        write_record(fresh, record)
    return record


def _source(folder: Path, model: str) -> str:
    require_onnx_kind(folder, model)
    source = onnx_files(folder).get("fp32")
    if source is None:
        raise ModelNotFound(model, "it has no full-precision ONNX file to quantize; run `headrace models export` on it")
    return source


def _checked(fresh: Path, model: str, open_pairs: OpenPairs) -> CheckFigures:
    if "int8" not in onnx_files(fresh):
        raise ModelUnsupported(model, "nothing in its graph can be quantized; serve it in full precision")
    figures = check_file(fresh, model, "int8", open_pairs)
    require_passed(model, "int8", figures)
    return figures


def _write_references(folder: Path, fresh: Path, source: str, model: str, open_pairs: OpenPairs) -> None:
    (fresh / source).parent.mkdir(parents=True, exist_ok=True)
    (fresh / source).symlink_to((folder / source).resolve())
    write_references(fresh, model, open_pairs)
    (fresh / source).unlink()


def _quantize(source: Path, target: Path, model: str, *, reduce_range: bool) -> None:
    from encoders.quantizing import quantize  # noqa: PLC0415  needs the extra

    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        quantize(source, target, reduce_range=reduce_range)
    except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AssertionError) as cause:
        raise ModelUnsupported(model, f"{source.name} cannot be quantized; export the model again") from cause
