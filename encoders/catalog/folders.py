"""What lies in a model folder: its kind, its ONNX files by precision, and a record of them made fresh."""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

from encoders.catalog.cards import licence_of
from encoders.catalog.record import Kind, ModelRecord, Precision, marks, now, tool
from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.models import ModelFiles, resolve
from encoders.sources import INT8, ModelSource
from encoders.types import TextKind

PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")

# Names of operators that only a quantized graph has. The nodes precede the weights in the file.
_QUANTIZED = (b"DynamicQuantize", b"MatMulInteger", b"QLinear", b"QAttention", b"QuantizeLinear")


def kind_of(folder: Path) -> Kind:
    """Tells what kind of model a folder holds, by its settings; whatever names no other kind is a bi-encoder."""
    config = read_settings(folder, "config.json")
    modules = read_settings(folder, "modules.json")
    steps = modules if isinstance(modules, list) else []
    if _field(config, "model_type") == "model2vec" or any("StaticEmbedding" in str(step) for step in steps):
        return "static"
    named = _field(read_settings(folder, "config_sentence_transformers.json"), "model_type")
    heads = _field(config, "architectures") or ()
    if named == "CrossEncoder" or any(str(head).endswith("ForSequenceClassification") for head in heads):
        return "cross-encoder"
    return "bi-encoder"


def onnx_files(folder: Path) -> dict[Precision, str]:
    """Returns the ONNX files that serving would take, by what they really are; paths inside the folder."""
    names = (*ModelSource("").onnx_candidates(), *ModelSource("", INT8).onnx_candidates())
    found: dict[Precision, str] = {}
    for name in names:
        if (folder / name).is_file():
            found.setdefault("int8" if _is_quantized(folder / name) else "fp32", name)
    return found


def files_of(folder: Path, model: str, file: str) -> ModelFiles:
    """Reads what a model's files say, for one of its ONNX files.

    Raises:
        ModelNotFound: a file that it needs is missing.
        ModelUnsupported: it needs a step that is not built here, or its files cannot be read.
    """
    try:
        return resolve(ModelSource(str(folder), file))
    except (ModelNotFound, ModelUnsupported) as error:
        raise type(error)(model, error.reason) from error


def fresh_record(folder: Path, model: str, revision: str, dim: int | None) -> ModelRecord:
    """Makes a record of a folder as it is now; nothing in it was checked.

    Raises:
        ModelNotFound, ModelUnsupported: it is no model that can be served.
    """
    kind = kind_of(folder)
    limits: dict[str, Any] = {"max_tokens": None, "pooling": "mean", "query_prompt": "", "passage_prompt": ""}
    if kind != "static":
        files = files_of(folder, model, next(iter(onnx_files(folder).values()), ""))
        limits = {
            "max_tokens": files.max_tokens,
            "pooling": files.pooling.value if files.pooling and kind == "bi-encoder" else None,
            "query_prompt": files.prompts[TextKind.QUERY],
            "passage_prompt": files.prompts[TextKind.PASSAGE],
        }
    return ModelRecord(
        model=model,
        revision=revision,
        licence=licence_of(folder),
        kind=kind,
        dim=dim if kind != "cross-encoder" else None,
        files=marks(folder),
        tool=tool(),
        made_at=now(),
        **limits,
    )


def read_settings(folder: Path, name: str) -> Any:
    """Reads one JSON file of a folder; None when it is missing or unreadable, which `resolve` complains about."""
    try:
        return json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _field(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, dict) else None


def _is_quantized(path: Path) -> bool:
    with path.open("rb") as opened:
        if not path.stat().st_size:
            return False
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return any(content.find(name) >= 0 for name in _QUANTIZED)
