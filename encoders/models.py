"""What a model's own files say about it: which weights, how its token states become a vector, prompts and limits.

The files are those that sentence-transformers writes, in its old and its new spelling. A model that needs a step which
is not built here (a dense layer after pooling, instructions left out of the mean) is refused: its vectors would look
right and be wrong.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.late.tokens import LATE_FILE
from encoders.revisions import revision_of
from encoders.sources import ModelSource, locate
from encoders.types import TextKind


class Pooling(enum.Enum):
    """How token states become one vector."""

    MEAN = "mean"
    CLS = "cls"
    LAST = "lasttoken"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model as its files describe it, before anything is opened."""

    model_id: str
    folder: Path
    onnx: Path
    tokenizer: Path
    max_tokens: int  # special tokens included
    pooling: Pooling | None  # None when no file names one: the graph may pool by itself
    normalized: bool
    prompts: Mapping[TextKind, str]
    late: Path | None  # how token states become token vectors; None for a model without them
    classifier: bool  # a head for classification or scoring instead of vectors
    revision: str  # changes when the weights, the tokenizer or anything else that shapes a result changes


def resolve(source: ModelSource) -> ModelFiles:
    """Finds a model and reads what its files say.

    Raises:
        ModelNotFound: there is no such model, or a file that it needs is missing.
        ModelUnsupported: it needs a step that is not built here, or its files cannot be read.
    """
    reader = _Reader(source.model, locate(source))
    config = reader.json("config.json")
    pooling, normalized = _pooling(reader)
    prompts = _prompts(source, reader)
    max_tokens = _max_tokens(source, reader, config)
    onnx, tokenizer = reader.first(*source.onnx_candidates()), reader.first("tokenizer.json")
    late = reader.optional(LATE_FILE)
    shape = json.dumps([str(pooling), normalized, [prompts[kind] for kind in TextKind], max_tokens])
    return ModelFiles(
        model_id=source.model,
        folder=reader.folder,
        onnx=onnx,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        pooling=pooling,
        normalized=normalized,
        prompts=prompts,
        late=late,
        classifier=any(name.endswith("ForSequenceClassification") for name in config.get("architectures") or ()),
        revision=revision_of((onnx, tokenizer, *([late] if late else [])), shape),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    model: str
    folder: Path

    def json(self, name: str) -> dict[str, Any]:
        found = self._value(name)
        if not isinstance(found, dict):
            raise self.unsupported(f"{name} holds no object; fetch the model's files again")
        return found

    def modules(self) -> list[dict[str, Any]]:
        found = self._value("modules.json") or [{"type": "Transformer"}, {"type": "Pooling", "path": "1_Pooling"}]
        if not isinstance(found, list) or not all(isinstance(module, dict) for module in found):
            raise self.unsupported("modules.json holds no list of steps; fetch the model's files again")
        return found

    def _value(self, name: str) -> Any:
        path = self.folder / name
        if not path.is_file():
            return {}
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as cause:
            raise self.unsupported(f"{name} cannot be read; fetch the model's files again") from cause

    def optional(self, name: str) -> Path | None:
        path = self.folder / name
        return path if path.is_file() else None

    def first(self, *names: str) -> Path:
        for name in names:
            path = self.folder / name
            # A setting may name any file of the model, but none outside it.
            if path.is_file() and ".." not in Path(name).parts and path.is_relative_to(self.folder):
                return path
        raise ModelNotFound(self.model, f"its folder has no {' or '.join(names)}; export the model to ONNX")

    def unsupported(self, reason: str) -> ModelUnsupported:
        return ModelUnsupported(self.model, reason)


def _pooling(reader: _Reader) -> tuple[Pooling | None, bool]:
    pooling, normalized = None, False
    for module in reader.modules():
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind == "Pooling":
            pooling = _pooling_mode(reader, f"{module.get('path', '')}/config.json")
        elif kind == "Normalize":
            normalized = True
        elif kind != "Transformer":
            raise reader.unsupported(
                f"it has a {kind or 'nameless'} step, which is not built here; choose another model"
            )
    return pooling, normalized


def _pooling_mode(reader: _Reader, name: str) -> Pooling | None:
    config = reader.json(name)
    if not config:
        return None
    old = [
        key.removeprefix("pooling_mode_") for key, value in config.items() if key.startswith("pooling_mode_") and value
    ]
    named = config.get("pooling_mode", old)
    modes = [named] if isinstance(named, str) else list(named)
    names = {"mean": Pooling.MEAN, "mean_tokens": Pooling.MEAN, "cls": Pooling.CLS, "cls_token": Pooling.CLS}
    names |= {"lasttoken": Pooling.LAST}
    if len(modes) != 1 or modes[0] not in names:
        raise reader.unsupported(
            f"it pools by {modes}, only mean, cls or lasttoken alone are built here; choose another"
        )
    if config.get("include_prompt", True) is False:
        raise reader.unsupported("it leaves its prompt out of pooling, which is not built here; choose another model")
    return names[modes[0]]


def _prompts(source: ModelSource, reader: _Reader) -> dict[TextKind, str]:
    config = reader.json("config_sentence_transformers.json")
    named = config.get("prompts") or {}
    default = named.get(config.get("default_prompt_name") or "", "")
    query, passage = named.get("query", default), named.get("passage", named.get("document", default))
    return {
        TextKind.QUERY: query if source.query_prompt is None else source.query_prompt,
        TextKind.PASSAGE: passage if source.passage_prompt is None else source.passage_prompt,
    }


def _max_tokens(source: ModelSource, reader: _Reader, config: Mapping[str, Any]) -> int:
    positions = config.get("max_position_embeddings")
    if positions is not None and config.get("model_type") in {"roberta", "xlm-roberta", "camembert", "mpnet"}:
        # These count positions from behind the padding token's id.
        positions -= (config.get("pad_token_id") or 0) + 1
    limits = [
        source.max_tokens,
        positions,
        reader.json("sentence_bert_config.json").get("max_seq_length"),
        reader.json("tokenizer_config.json").get("model_max_length"),
    ]
    known = [int(limit) for limit in limits if isinstance(limit, int | float) and limit > 0]
    return min(known)
