"""What every dense encoder promises, synchronous and scheduled: the bundled model, tiny ones, and static embeddings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from encoders.dense import OnnxDenseEncoder
from encoders.errors import NonFiniteOutput, WorkExpired
from encoders.models import resolve
from encoders.open import ScheduledDenseEncoder, open_dense
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from encoders.types import AsyncDenseEncoder, DenseEncoder, TextKind, WorkClass
from tests.fakes.tiny_models import MODERN_BERT, XLM_ROBERTA, make_tiny_bi_encoder, make_tiny_static
from tests.fakes.tiny_tokenizers import POISON

_PASSAGE, _ONLINE = TextKind.PASSAGE, WorkClass.ONLINE


@dataclass(frozen=True)
class Subject:
    """One model, opened both ways."""

    sync: OnnxDenseEncoder
    scheduled: ScheduledDenseEncoder
    special_tokens: int  # around a text

    async def encode(self, texts: list[str], kind: TextKind = _PASSAGE) -> np.ndarray:
        """Encodes through the scheduler, where nothing may fail."""
        outcomes = await self.scheduled.encode(texts, kind, _ONLINE, None)
        return np.stack([outcome.value for outcome in outcomes if outcome.value is not None])


def _bundled(folder: Path) -> str:
    del folder
    return "bundled:minilm-l6"


_MODELS: dict[str, Callable[[Path], object]] = {
    "bundled": _bundled,
    "bert": make_tiny_bi_encoder,
    "modern-bert": partial(make_tiny_bi_encoder, family=MODERN_BERT, pooling="cls"),
    "xlm-roberta": partial(make_tiny_bi_encoder, family=XLM_ROBERTA),
    "static": make_tiny_static,
    "static-reduced": partial(make_tiny_static, reduced=True, dtype="float16"),
}


@pytest.fixture(scope="module", params=_MODELS)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    """Opens a model both ways."""
    source = ModelSource(str(_MODELS[request.param](tmp_path_factory.mktemp("model"))))
    scheduler = TokenScheduler(workers=2, capacity_items=2_000)
    special_tokens = 0 if request.param.startswith("static") else 2
    yield Subject(OnnxDenseEncoder.open(resolve(source)), open_dense(source, scheduler), special_tokens)
    scheduler.stop()


def test_encoders_satisfy_their_protocols(subject: Subject) -> None:
    """Both views have what the protocols ask for, and agree on it."""
    sync: DenseEncoder = subject.sync
    scheduled: AsyncDenseEncoder = subject.scheduled
    assert (sync.model_id, sync.revision, sync.dim, sync.max_tokens) == (
        scheduled.model_id,
        scheduled.revision,
        scheduled.dim,
        scheduled.max_tokens,
    )


def test_vectors_have_unit_length_and_the_promised_shape(subject: Subject) -> None:
    """float32 [n, dim], each of length 1; no texts are no vectors."""
    vectors = subject.sync.encode_queries(["pump", "", "the seal of the valve " * 100])
    assert vectors.shape == (3, subject.sync.dim)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)
    assert subject.sync.encode_passages([]).shape == (0, subject.sync.dim)


async def test_vector_never_depends_on_its_neighbours(subject: Subject) -> None:
    """EMB-02: alone, among others, in either view, a text has the same vector to the last bit."""
    alone = subject.sync.encode_passages(["valve torque table"])[0]
    crowd = ["valve torque table", *["!" * 500] * 7]
    np.testing.assert_array_equal(alone, subject.sync.encode_passages(crowd)[0])
    np.testing.assert_array_equal(alone, (await subject.encode(crowd))[0])


async def test_result_i_belongs_to_text_i_with_parallel_callers(subject: Subject) -> None:
    """EMB-13: callers that encode many lengths at once each get their own vectors in their own order."""
    texts = [f"id{number} " + "w " * (number * 7 % 90) for number in range(40)]
    expected = subject.sync.encode_passages(texts)
    for found in await asyncio.gather(*(subject.encode(texts) for _ in range(3))):
        np.testing.assert_array_equal(found, expected)


async def test_cut_text_says_so_alone_and_in_a_list(subject: Subject) -> None:
    """EMB-07, EMB-20: a text over the limit is cut to exactly the limit, counted, and flagged, however it is sent."""
    long = "valve " * 3000
    alone = (await subject.scheduled.encode([long], _PASSAGE, _ONLINE, None))[0]
    listed = (await subject.scheduled.encode(["pump", long], _PASSAGE, _ONLINE, None))[1]
    for outcome in (alone, listed):
        assert outcome.truncated
        assert outcome.token_count == subject.scheduled.max_tokens
    assert alone.value is not None
    assert listed.value is not None
    np.testing.assert_array_equal(alone.value, listed.value)


async def test_tokenized_texts_are_encoded_as_texts_are(subject: Subject) -> None:
    """Tokenizing first changes nothing."""
    items = subject.scheduled.tokenize(["pump seal"], TextKind.QUERY)
    assert items[0].full_token_count == subject.scheduled.tokenization.count("pump seal") + subject.special_tokens
    (outcome,) = await subject.scheduled.encode_tokenized(items, _ONLINE, None)
    assert outcome.value is not None
    np.testing.assert_array_equal(outcome.value, subject.sync.encode_queries(["pump seal"])[0])


async def test_late_text_is_an_outcome_and_no_exception(subject: Subject) -> None:
    """A deadline that has passed shows in the outcome."""
    (outcome,) = await subject.scheduled.encode(["pump"], _PASSAGE, _ONLINE, time.monotonic_ns() - 1)
    assert isinstance(outcome.error, WorkExpired)


async def test_invisible_characters_hardly_change_a_vector(subject: Subject) -> None:
    """TOK-07: zero-width and no-break characters are spaces to the model."""
    vectors = await subject.encode(["pump seal", "pump\u200bseal", "\ufeffpump seal", "pump\u00a0seal"])
    assert float((vectors @ vectors[0]).min()) >= 0.95


async def test_one_bad_text_fails_alone(tmp_path: Path) -> None:
    """EMB-06: of eight texts one comes out as NaN; it has an error, the seven others have vectors."""
    scheduler = TokenScheduler(workers=2, capacity_items=50)
    encoder = open_dense(ModelSource(str(make_tiny_bi_encoder(tmp_path))), scheduler)
    texts = [POISON if number == 3 else f"t{number}" for number in range(8)]
    outcomes = await encoder.encode(texts, _PASSAGE, _ONLINE, None)
    assert isinstance(outcomes[3].error, NonFiniteOutput)
    assert [outcome.value is not None for outcome in outcomes] == [number != 3 for number in range(8)]
    scheduler.stop()
