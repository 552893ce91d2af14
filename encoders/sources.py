"""Where a model's files come from: the package itself, a local folder, or the Hugging Face hub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from encoders.errors import ModelNotFound

BUNDLED_PREFIX = "bundled:"
INT8 = "int8"

_BUNDLED = Path(__file__).parent / "bundled"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_PLAIN_NAME = re.compile(r"[\w.-]*\w[\w.-]*")
SETTINGS_FILES = (
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "*_Pooling/config.json",
)
_FULL_FILES = ("onnx/model.onnx", "model.onnx")
_INT8_FILES = (
    "onnx/model_int8.onnx",
    "onnx/model_quantized.onnx",
    "onnx/model_quint8_avx2.onnx",
    "onnx/model_qint8_avx512_vnni.onnx",
    "model_int8.onnx",
    "model_quantized.onnx",
)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Names a model and says how to take it; what is None is read from the model's own files."""

    model: str  # "bundled:NAME", a folder, or a Hugging Face id "owner/name"
    file: str = ""  # the ONNX file inside the model; "" for the usual one, "int8" for a quantized one
    revision: str = ""  # branch, tag or commit on the hub; "" for its main branch
    max_tokens: int = 512  # the model's own limit applies when it is smaller
    query_prompt: str | None = None
    passage_prompt: str | None = None
    models_folder: Path | None = None  # where fetched and exported models lie; looked into before the hub

    def onnx_candidates(self) -> tuple[str, ...]:
        """Lists the ONNX files to look for, best first."""
        if self.file == INT8:
            return _INT8_FILES
        return (self.file,) if self.file else _FULL_FILES

    def onnx_patterns(self) -> tuple[str, ...]:
        """Lists the same files with the weights that large models keep beside them."""
        return tuple(name for file in self.onnx_candidates() for name in (file, f"{file}_data", f"{file}.data"))


def bundled_folders() -> list[Path]:
    """Lists the folders of the models in the package, by name."""
    return sorted(found for found in _BUNDLED.iterdir() if found.is_dir())


def is_hub_id(model: str) -> bool:
    """Whether a name can be one of the hub's: owner/name."""
    return bool(_HUB_ID.fullmatch(model)) and not model.startswith(".")


def locate(source: ModelSource, also: Sequence[str] = ()) -> Path:
    """Returns the folder that holds the model's files; fetches those that are needed when it is on the hub.

    `also` names further files to fetch, which only some kinds of models need.

    Raises:
        ModelNotFound: there is no such bundled model or folder, or the hub does not give it.
    """
    name = source.model.removeprefix(BUNDLED_PREFIX)
    if name != source.model:
        # A name is no path: it must not lead out of the package.
        return _existing(_BUNDLED / name if _PLAIN_NAME.fullmatch(name) else Path(), source, "bundled models")
    folder = Path(source.model)
    if folder.is_dir():
        return folder
    pulled = source.models_folder / source.model if source.models_folder and _inside(source.model) else folder
    if pulled.is_dir():
        return pulled
    if not is_hub_id(source.model):
        raise ModelNotFound(source.model, "there is no such folder; give a folder, bundled:NAME or a Hugging Face id")
    return _downloaded(source, also)


def _inside(model: str) -> bool:
    return bool(model) and not Path(model).is_absolute() and ".." not in Path(model).parts


def _existing(folder: Path, source: ModelSource, where: str) -> Path:
    if folder == Path() or not folder.is_dir():
        known = ", ".join(found.name for found in bundled_folders())
        raise ModelNotFound(source.model, f"the {where} are {known}; choose one of them")
    return folder


def _downloaded(source: ModelSource, also: Sequence[str]) -> Path:
    # Imported here: the hub's client takes a third of a second, and a bundled or local model never needs it.
    from encoders.hub import download  # noqa: PLC0415

    return download(source.model, source.revision, (*SETTINGS_FILES, *source.onnx_patterns(), *also))
