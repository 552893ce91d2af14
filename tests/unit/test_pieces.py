"""How texts are cut into runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoders.curve import LengthCost, decide, measure, sample_of
from encoders.dense import DenseEngine, OnnxDenseEncoder
from encoders.models import resolve
from encoders.operators import is_quantized, is_quantized_dynamically
from encoders.pieces import EXACT, PiecePolicy, cut
from encoders.sources import ModelSource
from encoders.types import TextKind
from rerank.cross_encoder import OnnxCrossEncoder
from tests.fakes.quantized import add_int8
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_cross_encoder

BATCHES = PiecePolicy(budget_tokens=64, longest_tokens=32)
_COUNTS = st.lists(st.integers(1, 80), max_size=60)


@given(_COUNTS, st.integers(1, 300), st.integers(1, 100))
def test_pieces_hold_every_text_once_within_the_budget(counts: list[int], budget: int, longest: int) -> None:
    """Padding stays below an eighth or four tokens, and what is above the budget or too long runs alone."""
    pieces = cut(counts, PiecePolicy(budget, longest))
    assert sorted(position for piece in pieces for position in piece) == list(range(len(counts)))
    for piece in pieces:
        sizes = [counts[position] for position in piece]
        if len(piece) > 1:
            assert max(sizes) * len(sizes) <= budget
            assert max(sizes) <= longest
            assert max(sizes) - min(sizes) <= max(4, max(sizes) // 8)


def test_exact_policy_keeps_the_order() -> None:
    """One text a run, as they come."""
    assert cut([3, 1, 2], EXACT) == [[0], [1], [2]]


def _flat(ns: float, *lengths: int, texts: int = 1) -> list[LengthCost]:
    return [LengthCost(length, ns, texts) for length in lengths]


def test_linear_cost_means_one_text_a_run() -> None:
    """A batch that gains less than the margin is not worth its padding."""
    assert decide(_flat(100, 8, 16, 32), _flat(95, 8, 16, 32, texts=16)) == EXACT


def test_batches_are_used_up_to_the_length_where_they_gain() -> None:
    """The smallest batch with nearly all of the gain is taken; longer texts run alone."""
    single = [*_flat(400, 8), *_flat(300, 16), *_flat(100, 32)]
    batched = [
        *_flat(200, 8, texts=4), *_flat(100, 8, texts=16), *_flat(98, 8, texts=64),
        *_flat(120, 16, texts=4), *_flat(100, 16, texts=16), *_flat(99, 32, texts=4),
    ]  # fmt: skip
    assert decide(single, batched) == PiecePolicy(budget_tokens=256, longest_tokens=16)


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
def test_batched_vectors_are_those_of_texts_alone(tmp_path: Path, pooling: str) -> None:
    """Padding changes nothing, whatever the pooling, and order is kept."""
    encoder = OnnxDenseEncoder.open(resolve(ModelSource(str(make_tiny_bi_encoder(tmp_path, pooling=pooling)))))
    texts = ["pump", "seal of the valve", "", "the soup of cats", "torque torque torque", "pump seal"] * 5
    alone = encoder.encode_passages(texts)
    assert isinstance(encoder.engine, DenseEngine)
    encoder.engine.policy = BATCHES
    np.testing.assert_allclose(encoder.encode_passages(texts), alone, atol=1e-6)
    items = encoder.tokenize(texts, TextKind.PASSAGE)
    for item, (_, states) in zip(items, encoder.engine.vectors_and_states(items), strict=True):
        assert states is not None
        assert len(states) == item.token_count


def test_batched_logits_keep_their_order(tmp_path: Path) -> None:
    """The tiny model averages over padding as well, so only texts of one length compare; each gets its own."""
    encoder = OnnxCrossEncoder.open(resolve(ModelSource(str(make_tiny_cross_encoder(tmp_path)))))
    passages = ["pump", "seal", "valve", "torque", "soup", "cats"]
    alone = encoder.score("pump", passages)
    encoder.engine.policy = BATCHES
    np.testing.assert_allclose(encoder.score("pump", passages), alone, atol=1e-5)


def test_measured_curve_covers_the_lengths_of_the_model(tmp_path: Path) -> None:
    """Up to its own limit, alone and in batches."""
    encoder = OnnxDenseEncoder.open(resolve(ModelSource(str(make_tiny_bi_encoder(tmp_path, max_tokens=40)))))
    assert isinstance(encoder.engine, DenseEngine)
    sample = sample_of(encoder.tokenization, paired=False)
    curve = measure(encoder.engine, sample, encoder.max_tokens, may_batch=True)
    assert curve is not None
    assert [one.tokens for one in curve.single] == [8, 16, 32, 40]
    assert curve.batched
    assert all(one.ns_per_token > 0.0 for one in (*curve.single, *curve.batched))
    assert encoder.engine.policy == EXACT


def test_model_whose_results_depend_on_neighbours_gets_no_batches(tmp_path: Path) -> None:
    """The tiny cross-encoder averages padding in: seen by measuring, not by name."""
    encoder = OnnxCrossEncoder.open(resolve(ModelSource(str(make_tiny_cross_encoder(tmp_path)))))
    sample = sample_of(encoder.tokenization, paired=True)
    curve = measure(encoder.engine, sample, 64, may_batch=True)
    assert curve is not None
    assert (curve.batched, curve.policy) == ((), EXACT)


def test_measuring_gives_up_when_it_is_told(tmp_path: Path) -> None:
    """A stop waits for one run at most."""
    encoder = OnnxCrossEncoder.open(resolve(ModelSource(str(make_tiny_cross_encoder(tmp_path)))))
    sample = sample_of(encoder.tokenization, paired=True)
    assert measure(encoder.engine, sample, 64, may_batch=True, ended=lambda: True) is None


def test_quantized_files_are_told_by_their_operators(tmp_path: Path) -> None:
    """Dynamic quantization is what makes a result depend on its batch."""
    full = make_tiny_cross_encoder(tmp_path) / "onnx" / "model.onnx"
    int8 = add_int8(tmp_path)
    assert (is_quantized(full), is_quantized_dynamically(full)) == (False, False)
    assert (is_quantized(int8), is_quantized_dynamically(int8)) == (True, True)
