"""Fusing a graph's small operators into few large ones, as ONNX Runtime's transformer optimizer does.

Only its fusions in Python run: what ONNX Runtime rewrites by itself it rewrites when the file is opened, for the CPU at
hand. The optimizer knows BERT; of other architectures it fuses what looks the same and leaves the rest.
"""

from __future__ import annotations

import logging
from pathlib import Path

from onnxruntime.transformers.optimizer import optimize_model  # type: ignore[import-untyped]


def optimize(source: Path, target: Path, *, heads: int, hidden_size: int) -> None:
    """Writes the fused twin of an ONNX model.

    Raises:
        Exception: the optimizer met a graph that it does not know, in whatever way that showed.
    """
    logging.getLogger("onnxruntime.transformers").setLevel(logging.ERROR)
    made = optimize_model(str(source), model_type="bert", num_heads=heads, hidden_size=hidden_size, opt_level=0)
    made.save_model_to_file(str(target))
