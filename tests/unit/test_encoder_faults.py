"""Models and texts at the edge of what the encoders take."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from encoders.errors import EncoderError, ModelUnsupported, NonFiniteOutput
from encoders.measured import Measurements
from encoders.open import open_dense
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from encoders.types import TextKind, WorkClass
from rerank.cross_encoder import open_cross_encoder
from tests.fakes.quantized import add_int8
from tests.fakes.tiny_models import POISON, make_tiny_bi_encoder, make_tiny_cross_encoder


@pytest.fixture
def scheduler() -> Iterator[TokenScheduler]:
    """Opens a scheduler with two workers."""
    opened = TokenScheduler(workers=2, capacity_items=200)
    yield opened
    opened.stop(timeout_s=5.0)


async def test_long_query_against_short_and_empty_passages(tmp_path: Path, scheduler: TokenScheduler) -> None:
    """A query of more than 512 tokens keeps its share of each pair; no passage is too short to be scored."""
    encoder = open_cross_encoder(ModelSource(str(make_tiny_cross_encoder(tmp_path, max_tokens=512))), scheduler)
    query = "pump " * 600
    scores = await encoder.score(query, ["seal", "", "soup of cats"], None)
    assert np.isfinite(scores.logits).all()
    assert len(set(scores.logits.tolist())) == 3
    assert scores.truncated_count == 3
    pairs = encoder.encoder.tokenization.pairs(query, ["seal", ""])
    limit = encoder.encoder.tokenization.pair_query_limit
    assert [int((pair.type_ids == 0).sum()) for pair in pairs] == [limit + 2] * 2
    assert [int((pair.type_ids == 1).sum()) for pair in pairs] == [2, 1]


async def test_empty_text_has_a_vector(tmp_path: Path, scheduler: TokenScheduler) -> None:
    """Nothing but special tokens is still a text to the model."""
    encoder = open_dense(ModelSource(str(make_tiny_bi_encoder(tmp_path))), scheduler)
    [outcome] = await encoder.encode([""], TextKind.PASSAGE, WorkClass.ONLINE, None)
    assert outcome.value is not None
    assert np.linalg.norm(outcome.value) == pytest.approx(1.0, abs=1e-5)


async def test_one_poisoned_text_among_32_fails_alone(tmp_path: Path, scheduler: TokenScheduler) -> None:
    """EMB-06: NaN from the session is the error of its item, in a batch as one by one."""
    encoder = open_dense(ModelSource(str(make_tiny_bi_encoder(tmp_path))), scheduler)
    assert encoder.calibration is not None
    assert encoder.calibration.measure() is not None
    texts = [POISON if number == 21 else f"pump {number % 10}" for number in range(32)]
    outcomes = await encoder.encode(texts, TextKind.PASSAGE, WorkClass.BULK, None)
    assert [number for number, outcome in enumerate(outcomes) if outcome.value is None] == [21]
    assert isinstance(outcomes[21].error, NonFiniteOutput)


def test_measured_policy_is_taken_over_by_the_next_start(tmp_path: Path, scheduler: TokenScheduler) -> None:
    """A warm start knows how pieces are cut before the first call."""
    source, file = ModelSource(str(make_tiny_bi_encoder(tmp_path / "model"))), tmp_path / "measured.json"
    first = open_dense(source, scheduler, Measurements(file)).calibration
    assert first is not None
    assert first.curve is None
    curve = first.measure()
    second = open_dense(source, scheduler, Measurements(file)).calibration
    assert second is not None
    assert second.curve == curve
    assert curve is not None
    assert scheduler.policy_of(source.model) == curve.policy


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flipped(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(bytes(255 - byte for byte in content[:200]) + content[200:])


@pytest.mark.parametrize(
    ("damage", "which"),
    [
        (_empty, "model.onnx"),
        (_half, "model.onnx"),
        (_flipped, "model.onnx"),
        (_half, "model_int8.onnx"),
        (_flipped, "model_int8.onnx"),
    ],
)
def test_damaged_model_file_is_refused_with_one_sentence(
    tmp_path: Path, scheduler: TokenScheduler, damage: Callable[[Path], None], which: str
) -> None:
    """A download that broke off, or a bad disk, is seen when the model is opened, whichever file would have served."""
    folder = make_tiny_bi_encoder(tmp_path)
    if which == "model_int8.onnx":
        shutil.copy(add_int8(make_tiny_cross_encoder(tmp_path / "other")), folder / "onnx" / which)
    damage(folder / "onnx" / which)
    with pytest.raises(EncoderError, match=r"ONNX Runtime cannot open model") as refused:
        open_dense(ModelSource(str(folder)), scheduler)
    assert isinstance(refused.value, ModelUnsupported)
    assert str(refused.value).count("\n") == 0
