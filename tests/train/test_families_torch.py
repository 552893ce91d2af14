"""Random models of the families that are served, exported and compared with what torch computes.

Their published weights are not in the tests: what is checked is that inputs, special tokens, pooling and heads of such
an architecture come out of the served model as they come out of its own library.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from encoders.dense import OnnxDenseEncoder
from encoders.models import ModelFiles, Pooling, resolve
from encoders.sources import ModelSource
from rerank.cross_encoder import OnnxCrossEncoder
from tests.fakes.tiny_models import make_tiny_static, write_json
from tests.fakes.tiny_tokenizers import byte_tokenizer, piece_tokenizer, tiny_tokenizer

pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore")]

_TEXTS = ["pump", "the seal of the pump, and its valve", "soup for cats? " * 12, ""]
_PAIRS = [("pump seal", text) for text in _TEXTS if text]
_SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
# Weights as small as usual make all first tokens nearly the same: their order would be noise.
_MODERN = {
    **_SMALL,
    "initializer_range": 0.5,
    "local_attention": 8,
    "global_attn_every_n_layers": 2,
    "max_position_embeddings": 512,
}


def _save(folder: Path, architecture: str, tokenizer: Any, names: dict[str, str], **settings: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers
    tokenizer.no_padding()
    tokenizer.no_truncation()
    transformers.set_seed(3)
    family = architecture.partition("For")[0].removesuffix("Model")
    ids = {f"{name.removesuffix('_token')}_token_id": tokenizer.token_to_id(token) for name, token in names.items()}
    config = getattr(transformers, f"{family}Config")(vocab_size=tokenizer.get_vocab_size(), **ids, **settings)
    getattr(transformers, architecture)(config).eval().save_pretrained(folder)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=256, **names)
    fast.model_input_names = ["input_ids", "attention_mask"]
    fast.save_pretrained(folder)


def _bracketed() -> dict[str, str]:
    return {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}


def _angled() -> dict[str, str]:
    return {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}


def _export(folder: Path) -> ModelFiles:
    from encoders.export.exporting import export

    export(folder, str(folder), "", folder, OnnxCrossEncoder.open)
    return resolve(ModelSource(str(folder)))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_modern_bert_bi_encoder_computes_what_its_library_does(tmp_path: Path, pooling: str) -> None:
    """Sliding windows, rotary positions, no token types: vectors agree for texts shorter and longer than a window."""
    _save(tmp_path, "ModernBertModel", byte_tokenizer(), _bracketed(), **_MODERN)
    steps = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling")]
    write_json(
        tmp_path / "modules.json",
        [
            {"idx": int(number), "name": number, "path": path, "type": f"sentence_transformers.models.{step}"}
            for number, path, step in steps
        ],
    )
    mode = {"mean": "mean_tokens", "cls": "cls_token"}[pooling]
    write_json(tmp_path / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, f"pooling_mode_{mode}": True})
    files = _export(tmp_path)
    assert files.pooling is Pooling(pooling)
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(str(tmp_path), device="cpu").encode(_TEXTS, normalize_embeddings=True, batch_size=1)
    np.testing.assert_allclose(OnnxDenseEncoder.open(files).encode_passages(_TEXTS), expected, atol=1e-4)


@pytest.mark.parametrize(("pooling", "classes"), [("mean", 1), ("cls", 2)])
def test_modern_bert_cross_encoder_computes_what_its_library_does(tmp_path: Path, pooling: str, classes: int) -> None:
    """`classifier_pooling` and the head are part of the graph; one logit, or two of which the difference counts."""
    settings = {**_MODERN, "classifier_pooling": pooling, "num_labels": classes}
    _save(tmp_path, "ModernBertForSequenceClassification", byte_tokenizer(), _bracketed(), **settings)
    _compare_pairs(tmp_path, classes)


def test_xlm_roberta_cross_encoder_computes_what_its_library_does(tmp_path: Path) -> None:
    """Two closing tokens between the parts, positions that begin behind the padding id."""
    settings = {**_SMALL, "max_position_embeddings": 258, "type_vocab_size": 1, "num_labels": 1}
    names = {**_angled(), "unk_token": "<unk>"}
    _save(tmp_path, "XLMRobertaForSequenceClassification", piece_tokenizer(), names, **settings)
    _compare_pairs(tmp_path, 1)


def _compare_pairs(folder: Path, classes: int) -> None:
    files = _export(folder)
    import torch
    from sentence_transformers import CrossEncoder

    logits = CrossEncoder(str(folder), device="cpu").predict(_PAIRS, batch_size=1, activation_fn=torch.nn.Identity())
    expected = logits[:, 1] - logits[:, 0] if classes == 2 else logits
    encoder = OnnxCrossEncoder.open(files)
    found = [float(encoder.score(query, [passage])[0]) for query, passage in _PAIRS]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("reduced", [False, True])
def test_static_embeddings_compute_what_sentence_transformers_does(tmp_path: Path, reduced: bool) -> None:
    """The mean of the tokens' vectors agrees for texts of known words, mapping and weights included."""
    make_tiny_static(tmp_path, reduced=reduced)
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding

    tokenizer = tiny_tokenizer()
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = SentenceTransformer(modules=[StaticEmbedding.load(str(tmp_path))], device="cpu")
    expected = model.encode(_TEXTS[:3], normalize_embeddings=True)
    encoder = OnnxDenseEncoder.open(resolve(ModelSource(str(tmp_path))))
    np.testing.assert_allclose(encoder.encode_passages(_TEXTS[:3]), expected, atol=1e-5)
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))["model_type"] == "model2vec"
