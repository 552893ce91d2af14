"""What a model's own files say about it: its kind, which weights, how a vector is pooled, prompts and limits.

The files are those that sentence-transformers writes, in its old and its new spelling. A bi-encoder that needs a step
which is not built here (a dense layer after pooling, instructions left out of the mean) is refused: its vectors would
look right and be wrong. The steps of a cross-encoder are part of its graph, and `classifier_pooling` with them.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encoders.errors import ModelNotFound
from encoders.kinds import ModelKind, require_kind
from encoders.late.tokens import LATE_FILE
from encoders.model_folder import ModelFolder, step_name
from encoders.revisions import revision_of
from encoders.sources import ModelSource, locate
from encoders.types import TextKind

_USUAL_CLASS = 1


class Pooling(enum.Enum):
    """How token states become one vector."""

    MEAN = "mean"
    CLS = "cls"
    LAST = "lasttoken"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model as its files describe it, before anything is opened."""

    model_id: str
    kind: ModelKind  # never one that nothing here serves
    folder: Path
    weights: Path  # an ONNX file; of static embeddings their safetensors file
    tokenizer: Path
    max_tokens: int  # special tokens included
    pooling: Pooling | None  # None when no file names one: the graph may pool by itself
    normalized: bool
    prompts: Mapping[TextKind, str]
    late: Path | None  # how token states become token vectors; None for a model without them
    relevant_class: int  # which of two classes of a cross-encoder says "relevant"
    revision: str  # changes when the weights, the tokenizer or anything else that shapes a result changes


def resolve(source: ModelSource) -> ModelFiles:
    """Finds a model and reads what its files say.

    Raises:
        ModelNotFound: there is no such model, or a file that it needs is missing.
        ModelUnsupported: it is of no kind that is served, it needs a step that is not built here, or its files cannot
            be read.
    """
    folder = ModelFolder(source.model, locate(source))
    config, kind = folder.json("config.json"), _kind(folder)
    if kind is ModelKind.STATIC:
        # Whether the weights of PyTorch are what is wanted shows in the other files only; on the hub they were left.
        folder = ModelFolder(source.model, locate(source, _static_files(source, folder)))
    pooling, normalized = _pooling(folder) if kind is ModelKind.BI_ENCODER else (None, False)
    prompts = _prompts(source, folder)
    max_tokens = _max_tokens(source, folder, config)
    weights, tokenizer = _weights(source, folder, kind), folder.tokenizer()
    late = folder.first(LATE_FILE)
    relevant = _relevant_class(config)
    # The usual class is left out, so that revisions of before its time stay.
    unusual = [] if relevant == _USUAL_CLASS else [relevant]
    shape = json.dumps([str(pooling), normalized, [prompts[kind] for kind in TextKind], max_tokens, *unusual])
    return ModelFiles(
        model_id=source.model,
        kind=kind,
        folder=folder.path,
        weights=weights,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        pooling=pooling,
        normalized=normalized,
        prompts=prompts,
        late=late,
        relevant_class=relevant,
        revision=revision_of((weights, tokenizer, *([late] if late else [])), shape),
    )


def _kind(folder: ModelFolder) -> ModelKind:
    kind = folder.kind()
    require_kind(folder.model, kind, set(ModelKind) - {ModelKind.CAUSAL_LM, ModelKind.IMAGE}, ModelKind.BI_ENCODER)
    return kind


def _weights(source: ModelSource, folder: ModelFolder, kind: ModelKind) -> Path:
    names = _static_weights(source, folder) if kind is ModelKind.STATIC else source.onnx_candidates()
    found = folder.first(*names)
    if found is not None:
        return found
    missing = f"its folder has no {' or '.join(names)}"
    if kind is ModelKind.STATIC:
        raise ModelNotFound(folder.model, f"{missing}; fetch the model's files again")
    if folder.has_other_weights():
        missing += ", only weights for PyTorch"
    raise ModelNotFound(folder.model, f"{missing}; export it with `headrace models export`")


def _static_weights(source: ModelSource, folder: ModelFolder) -> tuple[str, ...]:
    return (source.file,) if source.file else tuple(f"{path}model.safetensors" for path in folder.static_paths())


def _static_files(source: ModelSource, folder: ModelFolder) -> tuple[str, ...]:
    return (*_static_weights(source, folder), *(f"{path}tokenizer.json" for path in folder.static_paths()))


def _pooling(folder: ModelFolder) -> tuple[Pooling | None, bool]:
    pooling, normalized = None, False
    for module in folder.modules():
        kind = step_name(module)
        if kind == "Pooling":
            pooling = _pooling_mode(folder, f"{module.get('path', '')}/config.json")
        elif kind == "Normalize":
            normalized = True
        elif kind != "Transformer":
            raise folder.unsupported(
                f"it has a {kind or 'nameless'} step, which is not built here; choose another model"
            )
    return pooling, normalized


def _pooling_mode(folder: ModelFolder, name: str) -> Pooling | None:
    config = folder.json(name)
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
        raise folder.unsupported(
            f"it pools by {modes}, only mean, cls or lasttoken alone are built here; choose another"
        )
    if config.get("include_prompt", True) is False:
        raise folder.unsupported("it leaves its prompt out of pooling, which is not built here; choose another model")
    return names[modes[0]]


def _prompts(source: ModelSource, folder: ModelFolder) -> dict[TextKind, str]:
    config = folder.json("config_sentence_transformers.json")
    named = config.get("prompts") or {}
    default = named.get(config.get("default_prompt_name") or "", "")
    query, passage = named.get("query", default), named.get("passage", named.get("document", default))
    return {
        TextKind.QUERY: query if source.query_prompt is None else source.query_prompt,
        TextKind.PASSAGE: passage if source.passage_prompt is None else source.passage_prompt,
    }


def _max_tokens(source: ModelSource, folder: ModelFolder, config: Mapping[str, Any]) -> int:
    positions = config.get("max_position_embeddings")
    if positions is not None and config.get("model_type") in {"roberta", "xlm-roberta", "camembert", "mpnet"}:
        # These count positions from behind the padding token's id.
        positions -= (config.get("pad_token_id") or 0) + 1
    limits = [
        source.max_tokens,
        positions,
        folder.json("sentence_bert_config.json").get("max_seq_length"),
        folder.json("tokenizer_config.json").get("model_max_length"),
    ]
    known = [int(limit) for limit in limits if isinstance(limit, int | float) and limit > 0]
    return min(known)


def _relevant_class(config: Mapping[str, Any]) -> int:
    # Two classes are "no" and "yes" in this order, unless their names say the opposite.
    names = config.get("id2label")
    first = str(names.get("0", "") if isinstance(names, Mapping) else "").strip().lower()
    return 0 if first in {"relevant", "yes", "true", "positive", "duplicate", "entailment", "match"} else _USUAL_CLASS
