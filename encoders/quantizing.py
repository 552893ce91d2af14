"""Making an int8 model of a full-precision one; needs the `onnx` package (extra `export`), the service never does.

Weights are signed, per output channel, and use 7 of 8 bits: a CPU without VNNI instructions adds two u8 x s8 products
in 16 bits, and full-range weights saturate there. Only products with constant weights are quantized.
"""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic  # type: ignore[import-untyped]


def quantize(source: Path, target: Path) -> None:
    """Writes the int8 twin of an ONNX model."""
    quantize_dynamic(
        source,
        target,
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
    )
