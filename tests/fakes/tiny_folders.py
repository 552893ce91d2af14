"""Tiny models as they lie in a models folder: with a card, without the word that poisons, with weights to quantize."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from rerank.cross_encoder import OnnxCrossEncoder
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_cross_encoder

CARD = "---\nlicense: mit\ntags:\n- sentence-similarity\n---\n# A tiny model\n"

open_pairs = OnnxCrossEncoder.open


def make_tiny_folder(folder: Path, *, paired: bool = False, logits: int = 1) -> Path:
    """Writes a model that computes finite numbers for every text, with its card; returns the folder."""
    if paired:
        make_tiny_cross_encoder(folder, logits=logits, max_tokens=256)
    else:
        make_tiny_bi_encoder(folder, max_tokens=256)
    change_weights(folder / "onnx" / "model.onnx", np.nan_to_num)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    return folder


def change_weights(path: Path, change: Callable[[NDArray[np.float32]], NDArray[Any]]) -> None:
    """Applies a function to every weight of an ONNX file."""
    model = onnx.load(str(path))
    for weight in model.graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.dtype == np.float32:
            weight.CopyFrom(numpy_helper.from_array(change(array).astype(np.float32), weight.name))
    onnx.save(model, str(path))
