"""Tiny ONNX models with random weights, made on the spot, so that tests run the real engines without any download.

A text's token states are the embeddings of its tokens plus those of its types: no attention, so vectors of texts that
share words are alike, and everything is exact. A model looks like one of a family from outside: its settings, its
tokenizer and the names of its inputs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from tests.fakes.tiny_tokenizers import POISON, byte_tokenizer, piece_tokenizer, tiny_tokenizer


@dataclass(frozen=True)
class Family:
    """What models of one architecture have in common from outside."""

    model_type: str
    name: str  # what architectures begin with
    takes_types: bool
    tokenizer: Callable[[], Tokenizer]


BERT = Family("bert", "Bert", True, tiny_tokenizer)
MODERN_BERT = Family("modernbert", "ModernBert", False, byte_tokenizer)
XLM_ROBERTA = Family("xlm-roberta", "XLMRoberta", False, piece_tokenizer)


def make_tiny_bi_encoder(
    folder: Path,
    *,
    dim: int = 16,
    pooling: str = "mean",
    max_tokens: int = 64,
    prompts: dict[str, str] | None = None,
    seed: int = 7,
    family: Family = BERT,
) -> Path:
    """Writes a bi-encoder as sentence-transformers lays it out (`onnx/model.onnx` included); returns the folder."""
    nodes, weights = _token_states(_write_tokenizer(folder, family), dim, seed, "last_hidden_state", family)
    output: tuple[str, list[str | int]] = ("last_hidden_state", ["batch", "sequence", dim])
    _write_graph(folder / "onnx" / "model.onnx", nodes, weights, output, family)
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]
    modes = {"mean": "mean_tokens", "cls": "cls_token", "lasttoken": "lasttoken", "max": "max_tokens"}
    write_json(folder / "config.json", {"architectures": [f"{family.name}Model"], "model_type": family.model_type})
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", {f"pooling_mode_{modes[pooling]}": True})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens})
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts or {}, "default_prompt_name": None})
    return folder


def make_tiny_cross_encoder(
    folder: Path,
    *,
    logits: int = 1,
    dim: int = 16,
    max_tokens: int = 64,
    seed: int = 11,
    family: Family = BERT,
) -> Path:
    """Writes a cross-encoder with one or two logits; returns the folder."""
    nodes, weights = _token_states(_write_tokenizer(folder, family), dim, seed, "states", family)
    head = np.random.default_rng(seed + 1).normal(size=(dim, logits)).astype(np.float32)
    weights.append(numpy_helper.from_array(head, "head"))
    nodes += [
        helper.make_node("ReduceMean", ["states"], ["pooled"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["pooled", "head"], ["logits"]),
    ]
    _write_graph(folder / "onnx" / "model.onnx", nodes, weights, ("logits", ["batch", logits]), family)
    config = {"architectures": [f"{family.name}ForSequenceClassification"], "model_type": family.model_type}
    write_json(folder / "config.json", {**config, "max_position_embeddings": max_tokens})
    return folder


def make_tiny_masked_lm(folder: Path, *, dim: int = 16, max_tokens: int = 64, seed: int = 13) -> Path:
    """Writes a masked language model, `model.onnx` beside the settings as SPLADE models lie; returns the folder."""
    vocabulary = _write_tokenizer(folder, BERT)
    nodes, weights = _token_states(vocabulary, dim, seed, "states", BERT)
    words = np.random.default_rng(seed + 1).normal(size=(dim, len(vocabulary))).astype(np.float32)
    weights.append(numpy_helper.from_array(words - 1.0, "decoder"))
    nodes.append(helper.make_node("MatMul", ["states", "decoder"], ["logits"]))
    _write_graph(folder / "model.onnx", nodes, weights, ("logits", ["batch", "sequence", len(vocabulary)]), BERT)
    write_json(folder / "config.json", {"architectures": ["BertForMaskedLM"], "model_type": "bert"})
    write_json(folder / "tokenizer_config.json", {"model_max_length": max_tokens, "pad_token": "[PAD]"})
    return folder


def make_tiny_static(
    folder: Path,
    *,
    dim: int = 16,
    dtype: str = "float32",
    reduced: bool = False,
    name: str = "embeddings",
    seed: int = 17,
) -> Path:
    """Writes static embeddings as model2vec lays them out; a `reduced` one has a mapping and weights."""
    vocabulary = _write_tokenizer(folder, BERT)
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(len(vocabulary) // 2 if reduced else len(vocabulary), dim))
    tensors = {name: (vectors * 40 if dtype == "int8" else vectors).astype(dtype)}
    if reduced:
        tensors["mapping"] = (np.arange(len(vocabulary)) % len(vectors)).astype(np.int64)
        tensors["weights"] = draw.uniform(0.5, 1.5, size=len(vocabulary)).astype(np.float32)
    save_file(tensors, folder / "model.safetensors")
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": dim, "normalize": True}
    write_json(folder / "config.json", {**config, "seq_length": 1_000_000})
    return folder


def write_json(path: Path, value: object) -> None:
    """Writes one JSON file, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def _write_tokenizer(folder: Path, family: Family) -> dict[str, int]:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = family.tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _token_states(
    vocabulary: dict[str, int], dim: int, seed: int, output: str, family: Family
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    draw = np.random.default_rng(seed)
    words: NDArray[np.float32] = draw.normal(size=(len(vocabulary), dim)).astype(np.float32)
    for piece, place in vocabulary.items():
        if piece.endswith(POISON):
            words[place] = np.nan
    if not family.takes_types:
        return [helper.make_node("Gather", ["words", "input_ids"], [output])], [numpy_helper.from_array(words, "words")]
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
    family: Family,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ("input_ids", "attention_mask", *(("token_type_ids",) if family.takes_types else ()))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names]
    outputs = [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializer=weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
