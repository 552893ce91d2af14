"""The record beside a model's weights, `headrace-model.json`.

It says what the model is, which files it is made of, how it was made, and what its check said. A record vouches for the
files that it names: a hash that does not hold means that somebody changed the model after it was checked, or that a
copy broke off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import file_digest
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from encoders.errors import ModelCheckFailed, ModelUnsupported
from encoders.kinds import ModelKind

RECORD_FILE = "headrace-model.json"
CARD_FILE = "README.md"
_FORMAT = 1

Precision: TypeAlias = Literal["fp32", "int8"]


@dataclass(frozen=True, slots=True)
class FileMark:
    """What a file was when it was recorded."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ExportFacts:
    """How the ONNX file was made of torch weights."""

    opset: int
    optimized: bool  # the fused graph was kept: it computes what the plain one does, and faster
    largest_difference: float  # of any number of the output, between torch and the file
    torch: str
    transformers: str


@dataclass(frozen=True, slots=True)
class QuantizationFacts:
    """How the int8 file was made of the full-precision one."""

    weights: Literal["int8"]
    per_channel: bool
    reduce_range: bool
    onnxruntime: str


@dataclass(frozen=True, slots=True)
class CheckFigures:
    """How far a file agrees with the full-precision references; None is what its kind of model has not."""

    passed: bool
    reference_count: int  # texts or pairs
    rank_agreement: float  # Kendall's tau
    lowest_cosine: float | None = None
    mean_cosine: float | None = None
    pearson: float | None = None


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """All that is known of a model folder."""

    model: str  # the id or folder that it was taken from
    revision: str  # the commit on the hub; "" for a folder
    licence: str  # as the model card names it; "" when it names none
    kind: ModelKind
    dim: int | None  # None for a cross-encoder
    max_tokens: int
    pooling: str | None
    query_prompt: str
    passage_prompt: str
    files: dict[str, FileMark]  # by path inside the folder
    tool: str
    made_at: str  # ISO 8601, UTC
    export: ExportFacts | None = None
    quantization: QuantizationFacts | None = None
    checks: dict[Precision, CheckFigures] = field(default_factory=dict)
    format: int = _FORMAT


_ADAPTER = TypeAdapter(ModelRecord)


def read_record(folder: Path, model: str) -> ModelRecord | None:
    """Reads a folder's record; None when it has none. `model` is the name that errors carry.

    Raises:
        ModelUnsupported: the record cannot be read.
    """
    path = folder / RECORD_FILE
    if not path.is_file():
        return None
    try:
        record = _ADAPTER.validate_json(path.read_bytes())
    except (OSError, ValidationError) as cause:
        reason = f"{RECORD_FILE} cannot be read; renew it with `headrace models check --record`"
        raise ModelUnsupported(model, reason) from cause
    if record.format != _FORMAT:
        raise ModelUnsupported(model, f"{RECORD_FILE} has format {record.format}; use the Headrace that wrote it")
    return record


def write_record(folder: Path, record: ModelRecord) -> None:
    """Writes the record in one piece: a reader sees the former one or this one."""
    fresh = folder / f".{RECORD_FILE}.partial"
    fresh.write_bytes(_ADAPTER.dump_json(record, indent=2) + b"\n")
    fresh.replace(folder / RECORD_FILE)


def mark(path: Path) -> FileMark:
    """Hashes a file."""
    with path.open("rb") as opened:
        digest = file_digest(opened, "sha256").hexdigest()
    return FileMark(digest, path.stat().st_size)


def marks(folder: Path) -> dict[str, FileMark]:
    """Hashes every file of a model folder, in order of their paths; hidden ones, the card and the record left out."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in {CARD_FILE, RECORD_FILE})
    names = [(path.relative_to(folder), path) for path in found]
    return {name.as_posix(): mark(path) for name, path in names if not any(part.startswith(".") for part in name.parts)}


def changed_files(folder: Path, record: ModelRecord) -> list[str]:
    """Lists the recorded files that are missing or not what they were."""
    return [
        name
        for name, recorded in record.files.items()
        if not (folder / name).is_file()
        or (folder / name).stat().st_size != recorded.size_bytes
        or mark(folder / name) != recorded
    ]


def require_unchanged(folder: Path, record: ModelRecord, model: str) -> None:
    """Compares the files with the record.

    Raises:
        ModelCheckFailed: a file is missing or not what was recorded.
    """
    changed = changed_files(folder, record)
    if changed:
        reason = f"{', '.join(changed)} changed since it was recorded; fetch or make the model again"
        raise ModelCheckFailed(model, reason)


def now() -> str:
    """Returns the time as records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def tool() -> str:
    """Names this program and its version."""
    try:
        return f"headrace {version('headrace')}"
    except PackageNotFoundError:
        return "headrace"
