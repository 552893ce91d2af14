"""What lies in a model folder: its kind, its ONNX files by precision, and a record of them made fresh."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from encoders.catalog.cards import licence_of
from encoders.catalog.record import ModelRecord, Precision, marks, now, tool
from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.kinds import ModelKind, kind_of, require_kind
from encoders.model_folder import ModelFolder, step_name
from encoders.models import ModelFiles, resolve
from encoders.operators import is_quantized
from encoders.sources import INT8, ModelSource
from encoders.types import TextKind

PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")


def kind_in(folder: Path, model: str = "") -> ModelKind:
    """Tells what kind of model a folder holds, by its settings; `model` is the name that errors carry.

    Raises:
        ModelUnsupported: its settings cannot be read.
    """
    opened = ModelFolder(model or folder.name, folder)
    tag = str(opened.json("config_sentence_transformers.json").get("model_type") or "")
    return kind_of(opened.json("config.json"), tag, [step_name(module) for module in opened.modules()])


def require_onnx_kind(folder: Path, model: str) -> ModelKind:
    """Returns the kind of a model that is an ONNX graph here: a bi-encoder or a cross-encoder.

    Raises:
        ModelUnsupported: it is of another kind.
    """
    kind = kind_in(folder, model)
    if kind is ModelKind.STATIC:
        raise ModelUnsupported(model, "it is a table of vectors, served as it is: nothing to export or quantize")
    require_kind(model, kind, {ModelKind.BI_ENCODER, ModelKind.CROSS_ENCODER}, ModelKind.BI_ENCODER)
    return kind


def onnx_files(folder: Path) -> dict[Precision, str]:
    """Returns the ONNX files that serving would take, by what they really are; paths inside the folder."""
    names = (*ModelSource("").onnx_candidates(), *ModelSource("", INT8).onnx_candidates())
    found: dict[Precision, str] = {}
    for name in names:
        if (folder / name).is_file():
            found.setdefault("int8" if is_quantized(folder / name) else "fp32", name)
    return found


def files_of(folder: Path, model: str, file: str) -> ModelFiles:
    """Reads what a model's files say, for one of its ONNX files.

    Raises:
        ModelNotFound: a file that it needs is missing.
        ModelUnsupported: it needs a step that is not built here, or its files cannot be read.
    """
    try:
        return replace(resolve(ModelSource(str(folder), file)), model_id=model)
    except (ModelNotFound, ModelUnsupported) as error:
        raise type(error)(model, error.reason) from error


def fresh_record(folder: Path, model: str, revision: str, dim: int | None) -> ModelRecord:
    """Makes a record of a folder as it is now; nothing in it was checked.

    Raises:
        ModelNotFound, ModelUnsupported: it is no model that can be served.
    """
    kind = kind_in(folder, model)
    files = files_of(folder, model, next(iter(onnx_files(folder).values()), ""))
    return ModelRecord(
        model=model,
        revision=revision,
        licence=licence_of(folder),
        kind=kind,
        dim=dim if kind is not ModelKind.CROSS_ENCODER else None,
        max_tokens=files.max_tokens,
        pooling=files.pooling.value if files.pooling else None,
        query_prompt=files.prompts[TextKind.QUERY],
        passage_prompt=files.prompts[TextKind.PASSAGE],
        files=marks(folder),
        tool=tool(),
        made_at=now(),
    )
