"""Reading the small files of a model folder: settings as JSON, and which files are there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.kinds import ModelKind, kind_of


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The files of one model; `model` is the name that errors carry."""

    model: str
    path: Path

    def json(self, name: str) -> dict[str, Any]:
        """Reads a file that holds an object; a missing one holds nothing.

        Raises:
            ModelUnsupported: it cannot be read.
        """
        found = self._value(name)
        if not isinstance(found, dict):
            raise self.unsupported(f"{name} holds no object; fetch the model's files again")
        return found

    def modules(self) -> list[dict[str, Any]]:
        """Lists the steps of a sentence-transformers model; none when no file names any.

        Raises:
            ModelUnsupported: modules.json cannot be read.
        """
        default = [{"type": "Transformer"}, {"type": "Pooling", "path": "1_Pooling"}]
        found = self._value("modules.json") or (default if (self.path / "1_Pooling" / "config.json").is_file() else [])
        if not isinstance(found, list) or not all(isinstance(module, dict) for module in found):
            raise self.unsupported("modules.json holds no list of steps; fetch the model's files again")
        return found

    def kind(self) -> ModelKind:
        """Tells what kind of model its settings describe.

        Raises:
            ModelUnsupported: they cannot be read.
        """
        tag = str(self.json("config_sentence_transformers.json").get("model_type") or "")
        return kind_of(self.json("config.json"), tag, [step_name(module) for module in self.modules()])

    def first(self, *names: str) -> Path | None:
        """Returns the path of the first file that is there, None when none is."""
        for name in names:
            path = self.path / name
            # A setting may name any file of the model, but none outside it.
            if path.is_file() and ".." not in Path(name).parts and path.is_relative_to(self.path):
                return path
        return None

    def tokenizer(self) -> Path:
        """Returns the path of the tokenizer.

        Raises:
            ModelNotFound: there is none.
        """
        found = self.first(*(f"{path}tokenizer.json" for path in self.static_paths()))
        if found is None:
            raise ModelNotFound(self.model, "its folder has no tokenizer.json; save the model's fast tokenizer there")
        return found

    def static_paths(self) -> tuple[str, ...]:
        """Lists where a static model may keep its files, as prefixes of their names."""
        # Newer versions keep the first step in the folder itself, older ones in a folder of its own.
        own = [str(module.get("path", "")) for module in self.modules() if step_name(module) == "StaticEmbedding"]
        return ("", *(f"{path}/" for path in own if path not in {"", "."}))

    def has_other_weights(self) -> bool:
        """Whether it has weights that only PyTorch can run."""
        return any(path.suffix in {".safetensors", ".bin", ".pt", ".pth"} for path in self.path.iterdir())

    def unsupported(self, reason: str) -> ModelUnsupported:
        """Makes the error of a model that cannot be used for a reason."""
        return ModelUnsupported(self.model, reason)

    def _value(self, name: str) -> Any:
        path = self.path / name
        if not path.is_file():
            return {}
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as cause:
            raise self.unsupported(f"{name} cannot be read; fetch the model's files again") from cause


def step_name(module: Mapping[str, Any]) -> str:
    """Returns the class name of a step in modules.json; "" when it names none."""
    return str(module.get("type", "")).rpartition(".")[2]
