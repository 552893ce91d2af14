"""Int8 twins of the tiny models, made by the product's own quantizing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from encoders.quantizing import quantize


def add_int8(folder: Path) -> Path:
    """Writes `model_int8.onnx` beside a tiny model's file, which loses its poison, and returns the new one."""
    full = folder / "onnx" / "model.onnx"
    change_words(full, np.nan_to_num)
    quantize(full, full.with_name("model_int8.onnx"))
    return full.with_name("model_int8.onnx")


def change_words(path: Path, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> None:
    """Changes the embeddings of a tiny model's file."""
    model = onnx.load(str(path))
    [words] = [weights for weights in model.graph.initializer if weights.name == "words"]
    values = change(numpy_helper.to_array(words)).astype(np.float32)
    words.CopyFrom(numpy_helper.from_array(values, words.name))
    onnx.save(model, str(path))
