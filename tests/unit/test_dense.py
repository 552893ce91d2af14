"""How token states become vectors, and which models are no bi-encoders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from encoders.dense import DenseEngine, OnnxDenseEncoder
from encoders.errors import ModelUnsupported, NonFiniteOutput
from encoders.models import resolve
from encoders.sources import ModelSource
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_cross_encoder
from tests.fakes.tiny_tokenizers import POISON


def _open(folder: Path) -> OnnxDenseEncoder:
    return OnnxDenseEncoder.open(resolve(ModelSource(str(folder))))


def _save(folder: Path, node: onnx.NodeProto, inputs: list[str], output: tuple[str, list[str | int]]) -> None:
    graph = helper.make_graph(
        [node],
        "other",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in inputs],
        [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "onnx" / "model.onnx"))


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
def test_vector_is_the_pooled_states_at_unit_length(tmp_path: Path, pooling: str) -> None:
    """Mean over all tokens, the first, or the last; then divided by its length."""
    encoder = _open(make_tiny_bi_encoder(tmp_path, pooling=pooling))
    (item,) = encoder.tokenization.texts(["pump seal valve"])
    assert isinstance(encoder.engine, DenseEngine)
    states = encoder.engine._session.run(
        {
            "input_ids": item.ids[None],
            "attention_mask": np.ones_like(item.ids)[None],
            "token_type_ids": item.type_ids[None],
        },
        "last_hidden_state",
    )[0]
    expected = {"mean": states.mean(axis=0), "cls": states[0], "lasttoken": states[-1]}[pooling]
    np.testing.assert_allclose(
        encoder.encode_passages(["pump seal valve"])[0], expected / np.linalg.norm(expected), rtol=1e-5
    )


def test_non_finite_output_is_an_error_of_its_item(tmp_path: Path) -> None:
    """EMB-06: NaN never leaves the engine as a vector."""
    encoder = _open(make_tiny_bi_encoder(tmp_path))
    items = encoder.tokenization.texts(["pump", f"pump {POISON}"])
    assert len(encoder.engine.run(items[:1])) == 1
    with pytest.raises(NonFiniteOutput):
        encoder.engine.run(items[1:])


def test_query_and_passage_are_encoded_differently(tmp_path: Path) -> None:
    """EMB-05: a model with prompts gives the two kinds different vectors, and never mixes them up."""
    encoder = _open(make_tiny_bi_encoder(tmp_path, prompts={"query": "query ", "passage": "passage "}))
    queries, passages = encoder.encode_queries(["pump seal"]), encoder.encode_passages(["pump seal"])
    assert not np.allclose(queries, passages)
    np.testing.assert_array_equal(queries, encoder.encode_queries(["pump seal"]))
    np.testing.assert_array_equal(passages, encoder.encode_passages(["pump seal"]))


def test_cross_encoder_is_refused_as_a_bi_encoder(tmp_path: Path) -> None:
    """A model that scores pairs is refused with one sentence."""
    with pytest.raises(ModelUnsupported, match="scores pairs"):
        _open(make_tiny_cross_encoder(tmp_path))


def test_model_without_pooling_is_refused(tmp_path: Path) -> None:
    """Token states without a word on pooling are no vector."""
    folder = make_tiny_bi_encoder(tmp_path)
    (folder / "1_Pooling" / "config.json").unlink()
    with pytest.raises(ModelUnsupported, match="how to pool"):
        _open(folder)


def test_model_without_token_states_is_refused(tmp_path: Path) -> None:
    """A graph that gives something else is refused when it is opened."""
    folder = make_tiny_bi_encoder(tmp_path)
    _save(
        folder, helper.make_node("Cast", ["input_ids"], ["y"], to=TensorProto.FLOAT), ["input_ids"], ("y", ["b", "s"])
    )
    with pytest.raises(ModelUnsupported, match="no token states"):
        _open(folder)


def test_model_with_an_unknown_input_is_refused(tmp_path: Path) -> None:
    """A graph that wants what a text does not give is refused when it is opened."""
    folder = make_tiny_bi_encoder(tmp_path)
    node = helper.make_node("Cast", ["pixels"], ["y"], to=TensorProto.FLOAT)
    _save(folder, node, ["pixels"], ("y", ["b", "s"]))
    with pytest.raises(ModelUnsupported, match="input_ids"):
        _open(folder)


def test_graph_that_pools_by_itself_is_taken_at_its_word(tmp_path: Path) -> None:
    """An output named sentence_embedding is the vector; only its length is made one."""
    folder = make_tiny_bi_encoder(tmp_path)
    expected = _open(folder).encode_passages(["pump seal"])
    path = folder / "onnx" / "model.onnx"
    model = onnx.load(str(path))
    model.graph.node.append(
        helper.make_node("ReduceMean", ["last_hidden_state"], ["sentence_embedding"], axes=[1], keepdims=0)
    )
    model.graph.output.append(helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", 16]))
    onnx.save(model, str(path))
    (folder / "1_Pooling" / "config.json").unlink()
    np.testing.assert_allclose(_open(folder).encode_passages(["pump seal"]), expected, rtol=1e-5)
