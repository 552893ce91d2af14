"""Making an int8 model of a full-precision one; needs the `onnx` package (extra `export`), the service never does.

Weights are signed, per output channel, and use 7 of 8 bits: a CPU without VNNI instructions adds two u8 x s8 products
in 16 bits, and full-range weights saturate there. Only products with constant weights are quantized.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic  # type: ignore[import-untyped]


def quantize(source: Path, target: Path, *, reduce_range: bool = True) -> None:
    """Writes the int8 twin of an ONNX model. Without `reduce_range` it is right only on CPUs that have VNNI.

    Raises:
        RuntimeError, ValueError: ONNX Runtime cannot read or quantize the model.
    """
    with _without_advice():
        quantize_dynamic(
            source,
            target,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=reduce_range,
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
        )


@contextmanager
def _without_advice() -> Iterator[None]:
    """Keeps the root logger quiet: the library recommends a step there that the optimizer has done already."""
    logger = logging.getLogger()
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
