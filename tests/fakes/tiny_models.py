"""Tiny ONNX models with random weights, made on the spot, so that tests run the real engines without any download.

A text's token states are the embeddings of its tokens plus those of its types: no attention, so vectors of texts that
share words are alike, and everything is exact. The tokenizer is a WordPiece of single characters and a few whole words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

POISON = "poison"  # a word whose embedding is not a number
WORDS = (POISON, "pump", "seal", "valve", "torque", "query", "passage", "the", "of", "soup", "cats")
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:;!?()-_/'\"[]äöüß"
_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def make_tiny_bi_encoder(
    folder: Path,
    *,
    dim: int = 16,
    pooling: str = "mean",
    max_tokens: int = 64,
    prompts: dict[str, str] | None = None,
    seed: int = 7,
) -> Path:
    """Writes a bi-encoder as sentence-transformers lays it out (`onnx/model.onnx` included); returns the folder."""
    vocabulary = _write_tokenizer(folder)
    nodes, weights = _token_states(vocabulary, dim, seed, output="last_hidden_state")
    _write_graph(folder / "onnx" / "model.onnx", nodes, weights, ("last_hidden_state", ["batch", "sequence", dim]))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]
    modes = {"mean": "mean_tokens", "cls": "cls_token", "lasttoken": "lasttoken", "max": "max_tokens"}
    write_json(folder / "config.json", {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": dim})
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", {f"pooling_mode_{modes[pooling]}": True})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens})
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts or {}, "default_prompt_name": None})
    return folder


def make_tiny_cross_encoder(
    folder: Path, *, logits: int = 1, dim: int = 16, max_tokens: int = 64, seed: int = 11
) -> Path:
    """Writes a cross-encoder with one or two logits; returns the folder."""
    vocabulary = _write_tokenizer(folder)
    nodes, weights = _token_states(vocabulary, dim, seed, output="states")
    head = np.random.default_rng(seed + 1).normal(size=(dim, logits)).astype(np.float32)
    weights.append(numpy_helper.from_array(head, "head"))
    nodes += [
        helper.make_node("ReduceMean", ["states"], ["pooled"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["pooled", "head"], ["logits"]),
    ]
    _write_graph(folder / "onnx" / "model.onnx", nodes, weights, ("logits", ["batch", logits]))
    config = {"architectures": ["BertForSequenceClassification"], "model_type": "bert", "hidden_size": dim}
    write_json(folder / "config.json", {**config, "max_position_embeddings": max_tokens})
    return folder


def write_json(path: Path, value: object) -> None:
    """Writes one JSON file, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def tiny_tokenizer(words: Sequence[str] = WORDS) -> Tokenizer:
    """Builds the tokenizer; it ships truncation and padding as the one of all-MiniLM-L6-v2 does."""
    pieces = [*_SPECIALS, *_CHARACTERS, *(f"##{character}" for character in _CHARACTERS), *words]
    vocabulary = {piece: position for position, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(_SPECIALS))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return tokenizer


def _write_tokenizer(folder: Path) -> dict[str, int]:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tiny_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _token_states(
    vocabulary: dict[str, int], dim: int, seed: int, output: str
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    draw = np.random.default_rng(seed)
    words: NDArray[np.float32] = draw.normal(size=(len(vocabulary), dim)).astype(np.float32)
    words[vocabulary[POISON]] = np.nan
    types = (draw.normal(size=(2, dim)) * 0.1).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["word_states"]),
        helper.make_node("Gather", ["types", "token_type_ids"], ["type_states"]),
        helper.make_node("Add", ["word_states", "type_states"], [output]),
    ]
    return nodes, [numpy_helper.from_array(words, "words"), numpy_helper.from_array(types, "types")]


def _write_graph(
    path: Path,
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
    output: tuple[str, list[str | int]],
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names]
    outputs = [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializer=weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
