"""What an ONNX file computes with, by the names of its operators: they stand in the file before the weights.

No session is opened for it, so that a listing of models is quick.
"""

from __future__ import annotations

import mmap
from pathlib import Path

_DYNAMIC = b"DynamicQuantize"
_QUANTIZED = (_DYNAMIC, b"MatMulInteger", b"QLinear", b"QAttention", b"QuantizeLinear", b"DequantizeLinear")


def is_quantized(path: Path) -> bool:
    """Tells whether a model file computes with 8-bit numbers."""
    return _names_operator(path, *_QUANTIZED)


def is_quantized_dynamically(path: Path) -> bool:
    """Tells whether a model takes the range of its numbers from each input, so that results depend on neighbours."""
    return _names_operator(path, _DYNAMIC)


def _names_operator(path: Path, *names: bytes) -> bool:
    # An empty file cannot be mapped.
    if not path.stat().st_size:
        return False
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(name) >= 0 for name in names)
