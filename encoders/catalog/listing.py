"""`headrace models list`: the bundled models, and those in a local models folder, recorded or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from encoders.catalog.folders import fresh_record, onnx_files
from encoders.catalog.record import ModelRecord, changed_files, read_record
from encoders.errors import ModelError
from encoders.model_folder import ModelFolder
from encoders.sources import BUNDLED_PREFIX, bundled_folders

_DEPTH = 2  # owner/name


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One model folder; without a record, or with a fault that keeps it from being served."""

    name: str  # what settings call it
    folder: Path
    record: ModelRecord | None  # None only with a fault
    recorded: bool
    changed: tuple[str, ...]  # recorded files that are not what they were
    precisions: tuple[str, ...]
    fault: str  # one sentence; "" for none


def list_models(models_folder: Path) -> list[ListedModel]:
    """Lists the bundled models, then those in the folder by name; hashes of recorded files are verified."""
    bundled = [_listed(BUNDLED_PREFIX + folder.name, folder) for folder in bundled_folders()]
    local = [_listed(folder.relative_to(models_folder).as_posix(), folder) for folder in model_folders(models_folder)]
    return bundled + local


def model_folders(models_folder: Path) -> Iterator[Path]:
    """Finds the model folders, `name` or `owner/name`, in order; hidden ones are work in progress."""
    for depth in range(1, _DEPTH + 1):
        for path in sorted(models_folder.glob("/".join("*" * depth) + "/config.json")):
            parts = path.parent.relative_to(models_folder).parts
            if not any(part.startswith(".") for part in parts):
                nested = depth > 1 and (path.parent.parent / "config.json").is_file()
                if not nested:  # 1_Pooling/config.json is a part of a model, no model
                    yield path.parent


def _listed(name: str, folder: Path) -> ListedModel:
    precisions = tuple(onnx_files(folder))
    try:
        record = read_record(folder, name)
        shown = record or fresh_record(folder, name, "", _hidden_size(name, folder))
    except ModelError as error:
        return ListedModel(name, folder, None, False, (), precisions, error.reason)
    changed = tuple(changed_files(folder, record)) if record is not None else ()
    return ListedModel(name, folder, shown, record is not None, changed, precisions, "")


def _hidden_size(name: str, folder: Path) -> int | None:
    config = ModelFolder(name, folder).json("config.json")
    size = config.get("hidden_size") or config.get("hidden_dim")
    return size if isinstance(size, int) else None
