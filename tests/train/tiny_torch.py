"""Tiny random models of the architectures whose weights are out of reach here, as their authors publish them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    ModernBertConfig,
    ModernBertForSequenceClassification,
    ModernBertModel,
    PreTrainedTokenizerFast,
)

from tests.fakes.tiny_folders import CARD
from tests.fakes.tiny_models import write_json
from tests.fakes.tiny_tokenizers import tiny_tokenizer

LONGEST = 256
_INPUTS = {"bert": ["input_ids", "token_type_ids", "attention_mask"], "modernbert": ["input_ids", "attention_mask"]}
_MODELS: dict[tuple[str, bool], Any] = {
    ("bert", False): BertModel,
    ("bert", True): BertForSequenceClassification,
    ("modernbert", False): ModernBertModel,
    ("modernbert", True): ModernBertForSequenceClassification,
}


def make_torch_model(folder: Path, kind: str, *, classes: int = 0) -> Path:
    """Writes safetensors, settings and tokenizer of a `bert` or `modernbert`; a cross-encoder when it has classes."""
    torch.manual_seed(11)
    config = _config(kind, classes)
    model = _MODELS[kind, classes > 0](config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8.0)  # untrained weights are so small that all texts are alike
    model.save_pretrained(str(folder))
    _tokenizer(kind).save_pretrained(str(folder))
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    if not classes:
        modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
        modules += [{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
        write_json(folder / "modules.json", modules)
        write_json(
            folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True, "word_embedding_dimension": 32}
        )
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": LONGEST, "do_lower_case": False})
    return folder


def make_modular_cross_encoder(folder: Path, body: Path) -> Path:
    """Writes a cross-encoder whose head is modules of its own: pooling and two dense layers over a bare body."""
    torch.manual_seed(12)
    modules = [
        Transformer(str(body)),
        Pooling(32, pooling_mode="cls"),
        Dense(32, 32, activation_function=torch.nn.GELU()),
        Dense(32, 1, activation_function=torch.nn.Identity(), module_output_name="scores"),
    ]
    CrossEncoder(modules=modules, device="cpu").save_pretrained(str(folder))
    return folder


def _tokenizer(kind: str) -> PreTrainedTokenizerFast:
    tokenizer = tiny_tokenizer()
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=LONGEST,
        model_input_names=_INPUTS[kind],
    )


def _config(kind: str, classes: int) -> BertConfig | ModernBertConfig:
    sizes: dict[str, Any] = {
        "vocab_size": tiny_tokenizer().get_vocab_size(),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "max_position_embeddings": LONGEST,
        **({"num_labels": classes} if classes else {}),
    }
    if kind == "bert":
        return BertConfig(num_hidden_layers=2, **sizes)
    # Layers 0 and 3 see everything, the others eight tokens to each side.
    special = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
    return ModernBertConfig(num_hidden_layers=4, global_attn_every_n_layers=3, local_attention=16, **special, **sizes)
