"""The int8 settings of our builds, on this CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from encoders.onnx import OnnxSession
from encoders.quantizing import quantize


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_quantized_product_does_not_saturate(tmp_path: Path) -> None:
    """EMB-14: columns of -1 and +1 over an input of ones stay within 5 % of full precision, without VNNI too."""
    weights = np.tile(np.array([-1.0, 1.0], dtype=np.float32), (256, 4))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])],
        initializer=[numpy_helper.from_array(weights, "w")],
    )
    full, small = tmp_path / "full.onnx", tmp_path / "int8.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(full))
    quantize(full, small)
    given = np.ones((1, 256), dtype=np.float32)
    given[0, 0] = -0.01
    expected = OnnxSession.open(full, "full").run({"x": given}, "y")
    found = OnnxSession.open(small, "int8").run({"x": given}, "y")
    kinds = {node.op_type for node in onnx.load(str(small)).graph.node}
    assert kinds & {"MatMulInteger", "DynamicQuantizeMatMul"}
    np.testing.assert_allclose(found, expected, rtol=0.05)
