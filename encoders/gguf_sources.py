"""Where GGUF weights come from: a file, a folder, a name that was pulled, or the Hugging Face hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from encoders.errors import ModelNotFound
from encoders.gguf_pulling import PULLABLE
from encoders.gguf_tokenizer import TOKENIZER_FILE
from encoders.sources import is_hub_id

_SUFFIX = ".gguf"
_LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")


@dataclass(frozen=True, slots=True)
class GgufSource:
    """Names weights: a path of a file or folder, a name that `headrace models pull` knows, or owner/name on the hub."""

    model: str
    file: str = ""  # the file inside a folder or a repository; "" for the only one
    models_folder: Path | None = None  # where pulled models lie

    @property
    def label(self) -> str:
        """What replies call the model: never a path of this machine."""
        return Path(self.model).name.removesuffix(_SUFFIX) if Path(self.model).exists() else self.model


def locate_gguf(source: GgufSource) -> Path:
    """Returns the weights' path, the first part's if there are several; fetches them when they are on the hub.

    Raises:
        ModelNotFound: there is no such file, it has to be pulled first, or the hub does not give it.
    """
    place = Path(source.model)
    if place.is_file():
        return place
    pulled = _pulled(source)
    for folder in (place, pulled):
        if folder is not None and folder.is_dir():
            return _inside(folder, source)
    if source.model in PULLABLE:
        raise ModelNotFound(source.model, f"it is not there yet; run `headrace models pull {source.model}`")
    if source.model.endswith(_SUFFIX) or not is_hub_id(source.model):
        known = ", ".join(sorted(PULLABLE))
        raise ModelNotFound(source.model, f"there is no such file; give a GGUF file, a Hugging Face id, or {known}")
    return _fetched(source)


def _pulled(source: GgufSource) -> Path | None:
    named = source.model in PULLABLE or is_hub_id(source.model)
    return source.models_folder / source.model if source.models_folder and named else None


def _inside(folder: Path, source: GgufSource) -> Path:
    if source.file:
        if not (folder / source.file).is_file():
            raise ModelNotFound(source.model, f"it holds no {source.file}; correct `file`")
        return folder / source.file
    return folder / _only([path.name for path in folder.iterdir()], source)


def _fetched(source: GgufSource) -> Path:
    # Imported here: the hub's client takes a third of a second, and local weights never need it.
    from encoders.hub import download, file_names  # noqa: PLC0415

    file = source.file or _only(file_names(source.model, ""), source)
    parts = re.sub(r"-00001-of-(\d{5})\.gguf$", r"-*-of-\1.gguf", file)
    found = download(source.model, "", (parts, TOKENIZER_FILE)) / file
    if not found.is_file():
        raise ModelNotFound(source.model, f"it holds no {source.file}; correct `file`")
    return found


def _only(names: list[str], source: GgufSource) -> str:
    found = sorted(name for name in names if name.endswith(_SUFFIX) and not _LATER_PART.search(name))
    if len(found) != 1:
        choice = f"it holds {', '.join(found)}; choose one with `file`" if found else "it holds no GGUF file"
        raise ModelNotFound(source.model, choice)
    return found[0]
