"""Fitting a token projection to unlabelled passages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelUnsupported
from encoders.late.fit import LateShape, fit_projection
from encoders.models import resolve
from encoders.sources import ModelSource
from encoders.types import TextKind
from tests.fakes.tiny_models import make_tiny_bi_encoder

PASSAGES = ["The pump stops when the seal leaks.", "A valve leaks.", "The valve, and the pump!", "A seal of the valve"]


@pytest.fixture(scope="module")
def bundled() -> OnnxDenseEncoder:
    """The model that ships."""
    return OnnxDenseEncoder.open(resolve(ModelSource("bundled:minilm-l6")))


def test_fit_weighs_rare_tokens_above_common_ones(bundled: OnnxDenseEncoder) -> None:
    """Weights fall with the document frequency; stop words, punctuation and special tokens have none."""
    fitted = fit_projection(bundled, PASSAGES, LateShape(32, 4))
    [item] = bundled.tokenize(["stops valve the !"], TextKind.QUERY)
    start, stops, valve, the, mark, end = fitted.token_weights[item.ids].tolist()
    assert stops > valve > 0
    assert [start, the, mark, end] == [0, 0, 0, 0]


def test_fit_gives_the_same_projection_again(bundled: OnnxDenseEncoder) -> None:
    """Nothing in it is left to chance, so a model's revision can be made again."""
    first, second = (fit_projection(bundled, PASSAGES, LateShape(32, 2)) for _ in range(2))
    assert np.array_equal(first.projection, second.projection)
    assert first.codec.code_bytes == 8


def test_fit_finds_the_passage_that_says_it(bundled: OnnxDenseEncoder) -> None:
    """Late interaction by a fitted projection prefers the passage with the question's words in it."""
    fitted = fit_projection(bundled, PASSAGES, LateShape(64, 4))
    [asked, *told] = bundled.tokenize(["which seal leaks?", *PASSAGES], TextKind.PASSAGE)
    states = [bundled.engine.vectors_and_states([item])[0][1] for item in (asked, *told)]
    query = fitted.query_vectors(asked, states[0])  # type: ignore[arg-type]
    codes = [fitted.passage_codes(item, state) for item, state in zip(told, states[1:], strict=True)]  # type: ignore[arg-type]
    scores = fitted.codec.scores(query, np.concatenate(codes), np.cumsum([len(one) for one in codes]))
    assert int(scores.argmax()) == 0


def test_fit_refuses_what_cannot_be_fitted(bundled: OnnxDenseEncoder, tmp_path: Path) -> None:
    """No passages, more dimensions than there are, and codes that fill no bytes."""
    with pytest.raises(ValueError, match="needs passages"):
        fit_projection(bundled, [], LateShape())
    with pytest.raises(ValueError, match="whole bytes"):
        fit_projection(bundled, PASSAGES, LateShape(30, 3))
    tiny = OnnxDenseEncoder.open(resolve(ModelSource(str(make_tiny_bi_encoder(tmp_path)))))
    with pytest.raises(ModelUnsupported, match="ask for fewer"):
        fit_projection(tiny, ["pump"], LateShape())
