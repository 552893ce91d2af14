"""What kind of model a folder holds, and the one sentence for each that is not wanted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelError, ModelNotFound, ModelUnsupported
from encoders.kinds import ModelKind, kind_of
from encoders.models import resolve
from encoders.sources import ModelSource
from rerank.cross_encoder import OnnxCrossEncoder
from tests.fakes.tiny_models import (
    MODERN_BERT,
    make_tiny_bi_encoder,
    make_tiny_cross_encoder,
    make_tiny_masked_lm,
    make_tiny_static,
    write_json,
)

_CHAIN = ["Transformer", "Pooling", "Dense", "LayerNorm", "Dense"]


@pytest.mark.parametrize(
    ("config", "tag", "steps", "kind"),
    [
        ({}, "", [], ModelKind.BI_ENCODER),
        ({"architectures": ["BertModel"]}, "", ["Transformer", "Pooling"], ModelKind.BI_ENCODER),
        ({"architectures": ["JinaBertForMaskedLM"]}, "", ["Transformer", "Pooling"], ModelKind.BI_ENCODER),
        ({"architectures": ["Qwen3ForCausalLM"]}, "SentenceTransformer", ["Transformer"], ModelKind.BI_ENCODER),
        ({"architectures": ["ModernBertForSequenceClassification"]}, "", [], ModelKind.CROSS_ENCODER),
        ({"architectures": ["ModernBertModel"]}, "CrossEncoder", _CHAIN, ModelKind.CROSS_ENCODER),
        ({"architectures": ["Qwen3ForCausalLM"]}, "CrossEncoder", ["Transformer", "LogitScore"], ModelKind.CAUSAL_LM),
        ({"model_type": "model2vec"}, "", [], ModelKind.STATIC),
        ({"architectures": ["StaticModel"]}, "", [], ModelKind.STATIC),
        ({}, "SentenceTransformer", ["StaticEmbedding", "Normalize"], ModelKind.STATIC),
        ({"architectures": ["BertForMaskedLM"]}, "", [], ModelKind.MASKED_LM),
        ({"architectures": ["BertModel"]}, "", ["MLMTransformer", "SpladePooling"], ModelKind.MASKED_LM),
        ({"architectures": ["GPT2LMHeadModel"]}, "", [], ModelKind.CAUSAL_LM),
        ({"architectures": ["LlamaForCausalLM"]}, "", [], ModelKind.CAUSAL_LM),
        ({"architectures": ["ViTModel"], "image_size": 224}, "", [], ModelKind.IMAGE),
        ({"architectures": ["CLIPModel"], "vision_config": {}}, "", [], ModelKind.IMAGE),
    ],
)
def test_kind_is_read_from_what_says_most(
    config: dict[str, object], tag: str, steps: list[str], kind: ModelKind
) -> None:
    """Steps and tag go before the name of the architecture, which embedding models inherit."""
    assert kind_of(config, tag, steps) is kind


def _dense(folder: Path) -> OnnxDenseEncoder:
    return OnnxDenseEncoder.open(resolve(ModelSource(str(folder))))


def _cross(folder: Path) -> OnnxCrossEncoder:
    return OnnxCrossEncoder.open(resolve(ModelSource(str(folder))))


def _labelled(folder: Path, architecture: str, **config: object) -> Path:
    """Makes a model whose settings say that it is something else than its graph is."""
    make_tiny_bi_encoder(folder)
    (folder / "modules.json").unlink()
    (folder / "1_Pooling" / "config.json").unlink()
    write_json(folder / "config.json", {"architectures": [architecture], **config})
    return folder


def _causal(folder: Path) -> Path:
    return _labelled(folder, "GPT2LMHeadModel")


def _image(folder: Path) -> Path:
    return _labelled(folder, "ViTModel", image_size=224)


def _masked_named_bi_encoder(folder: Path) -> Path:
    make_tiny_masked_lm(folder)
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "mean"})
    return folder


def _with_dense_step(folder: Path) -> Path:
    make_tiny_bi_encoder(folder)
    write_json(folder / "modules.json", [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])
    return folder


def _headless(folder: Path) -> Path:
    make_tiny_bi_encoder(folder, family=MODERN_BERT)
    write_json(folder / "config_sentence_transformers.json", {"model_type": "CrossEncoder"})
    return folder


_REFUSED: list[tuple[Callable[[Path], object], Callable[[Path], Path], str]] = [
    (_dense, make_tiny_cross_encoder, "it scores pairs and has no vectors; choose a bi-encoder"),
    (_dense, make_tiny_masked_lm, r"it guesses masked words \(a masked language model\); choose a bi-encoder"),
    (_dense, _masked_named_bi_encoder, "no token states; choose a bi-encoder"),
    (_dense, _causal, r"it writes text \(a causal language model\); choose a bi-encoder"),
    (_dense, _image, "it reads images; choose a bi-encoder"),
    (_dense, _with_dense_step, "it has a Dense step, which is not built here; choose another model"),
    (_cross, make_tiny_bi_encoder, "not one logit a pair; choose a cross-encoder"),
    (_cross, make_tiny_static, "it looks up one vector a token and scores no pairs; choose a cross-encoder"),
    (_cross, make_tiny_masked_lm, r"it guesses masked words \(a masked language model\); choose a cross-encoder"),
    (_cross, _headless, "the file lacks the scoring head; export it with `headrace models export`"),
]


@pytest.mark.parametrize(("open_model", "make", "sentence"), _REFUSED)
def test_wrong_kind_of_model_is_refused_with_one_sentence(
    tmp_path: Path, open_model: Callable[[Path], object], make: Callable[[Path], Path], sentence: str
) -> None:
    """A model of another kind is refused when it is opened, by what it does and what to choose."""
    make(tmp_path / "model")
    with pytest.raises(ModelUnsupported, match=sentence) as refused:
        open_model(tmp_path / "model")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_model_with_weights_for_pytorch_only_is_told_to_be_exported(tmp_path: Path, weights: str) -> None:
    """A folder whose weights nothing here can run says what would make it one."""
    folder = make_tiny_bi_encoder(tmp_path)
    (folder / "onnx" / "model.onnx").rename(folder / weights)
    with pytest.raises(ModelNotFound, match="only weights for PyTorch; export it with `headrace models export`"):
        resolve(ModelSource(str(folder)))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (make_tiny_bi_encoder, "onnx/model.onnx"),
        (make_tiny_bi_encoder, "tokenizer.json"),
        (make_tiny_static, "model.safetensors"),
        (make_tiny_static, "tokenizer.json"),
    ],
)
def test_model_without_weights_or_tokenizer_names_what_is_missing(
    tmp_path: Path, make: Callable[[Path], Path], name: str
) -> None:
    """The file that is missing stands in the sentence."""
    (make(tmp_path) / name).unlink()
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        resolve(ModelSource(str(tmp_path)))


@pytest.mark.parametrize(
    ("names", "relevant"),
    [
        ({"0": "LABEL_0", "1": "LABEL_1"}, 1),
        ({"0": "irrelevant", "1": "relevant"}, 1),
        ({"0": "Relevant", "1": "other"}, 0),
        ({"0": "yes", "1": "no"}, 0),
        (None, 1),
        (["relevant"], 1),
    ],
)
def test_relevant_class_is_the_second_unless_the_names_say_the_first(
    tmp_path: Path, names: object, relevant: int
) -> None:
    """Of two classes the settings may name the first one the relevant one; then the score turns round."""
    folder = make_tiny_cross_encoder(tmp_path, logits=2)
    usual = _cross(folder)
    write_json(folder / "config.json", {"architectures": ["BertForSequenceClassification"], "id2label": names})
    found = _cross(folder)
    assert resolve(ModelSource(str(folder))).relevant_class == relevant
    sign = 1 if relevant == 1 else -1
    assert found.score("pump", ["seal"]) == sign * usual.score("pump", ["seal"])


def test_long_limit_of_a_model_holds_when_it_is_asked_for(tmp_path: Path) -> None:
    """ModernBERT takes 8,192 tokens; without a wish the usual 512 hold."""
    folder = make_tiny_bi_encoder(tmp_path, max_tokens=8192, family=MODERN_BERT)
    assert resolve(ModelSource(str(folder))).max_tokens == 512
    files = resolve(ModelSource(str(folder), max_tokens=8192))
    assert files.max_tokens == 8192
    (item,) = OnnxDenseEncoder.open(files).tokenization.texts(["pump " * 10_000])
    assert (item.token_count, item.truncated) == (8192, True)
