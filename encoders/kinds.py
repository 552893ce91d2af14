"""What kind of model a folder holds, by its own settings, and the one sentence for a kind that is not wanted.

The name of an architecture is a weak sign: embedding models are often published under the name of the language model
that they grew from. So what sentence-transformers wrote down goes first, and the graph has the last word when the model
is opened.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from encoders.errors import ModelUnsupported


class ModelKind(enum.Enum):
    """What a model does with text, or that it does something else."""

    BI_ENCODER = "bi-encoder"
    CROSS_ENCODER = "cross-encoder"
    STATIC = "static"
    MASKED_LM = "masked language model"
    CAUSAL_LM = "causal language model"
    IMAGE = "image model"


_DOES = {
    ModelKind.BI_ENCODER: "it gives vectors and scores no pairs",
    ModelKind.CROSS_ENCODER: "it scores pairs and has no vectors",
    ModelKind.STATIC: "it looks up one vector a token and scores no pairs",
    ModelKind.MASKED_LM: "it guesses masked words (a masked language model)",
    ModelKind.CAUSAL_LM: "it writes text (a causal language model)",
    ModelKind.IMAGE: "it reads images",
}
_INSTEAD = {
    ModelKind.BI_ENCODER: "choose a bi-encoder",
    ModelKind.STATIC: "choose a bi-encoder",
    ModelKind.CROSS_ENCODER: "choose a cross-encoder",
    ModelKind.MASKED_LM: "choose a SPLADE model",
}
_TAGS = {
    "CrossEncoder": ModelKind.CROSS_ENCODER,
    "SentenceTransformer": ModelKind.BI_ENCODER,
    "SparseEncoder": ModelKind.MASKED_LM,
}
_STEPS = {
    "StaticEmbedding": ModelKind.STATIC,
    "LogitScore": ModelKind.CAUSAL_LM,
    "MLMTransformer": ModelKind.MASKED_LM,
    "SpladePooling": ModelKind.MASKED_LM,
    "CLIPModel": ModelKind.IMAGE,
    "Pooling": ModelKind.BI_ENCODER,
}
_HEADS = {
    "ForSequenceClassification": ModelKind.CROSS_ENCODER,
    "ForMaskedLM": ModelKind.MASKED_LM,
    "ForCausalLM": ModelKind.CAUSAL_LM,
    "LMHeadModel": ModelKind.CAUSAL_LM,
    "ForImageClassification": ModelKind.IMAGE,
}
_IMAGE_SETTINGS = {"image_size", "num_channels", "vision_config"}


def kind_of(config: Mapping[str, Any], tag: str, steps: Sequence[str]) -> ModelKind:
    """Tells a model's kind; one that says nothing is taken for a bi-encoder.

    `config` is config.json, `tag` the `model_type` of config_sentence_transformers.json ("" without one), `steps` the
    class names in modules.json, without their modules (none without that file).
    """
    heads = [str(name) for name in config.get("architectures") or ()]
    if _IMAGE_SETTINGS & config.keys():
        return ModelKind.IMAGE
    if config.get("model_type") == "model2vec" or "StaticModel" in heads:
        return ModelKind.STATIC
    # A pooling step is part of some cross-encoders too, so the steps that tell more go first.
    plain = [_STEPS[step] for step in steps if step in _STEPS and step != "Pooling"]
    if plain:
        return plain[0]
    if tag in _TAGS:
        return _TAGS[tag]
    if "Pooling" in steps:
        return ModelKind.BI_ENCODER
    return next((kind for end, kind in _HEADS.items() for head in heads if head.endswith(end)), ModelKind.BI_ENCODER)


def require_kind(model: str, found: ModelKind, wanted: Collection[ModelKind], instead: ModelKind) -> None:
    """Refuses a kind that is not wanted; `instead` is what the sentence asks for.

    Raises:
        ModelUnsupported: it is not among the wanted ones.
    """
    if found not in wanted:
        raise ModelUnsupported(model, f"{_DOES[found]}; {_INSTEAD[instead]}")
