"""What every reranker promises: a pair's score is its own, and a list is scored whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from encoders.errors import ModelUnsupported, NonFiniteOutput
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from rerank.cross_encoder import ScheduledCrossEncoder, open_cross_encoder
from rerank.errors import QueryTooLong, RerankIncomplete
from rerank.types import AsyncReranker, Reranker
from tests.fakes.tiny_models import BERT, MODERN_BERT, XLM_ROBERTA, make_tiny_bi_encoder, make_tiny_cross_encoder
from tests.fakes.tiny_tokenizers import POISON

_PASSAGES = ["the seal of the pump", "soup", "cats", "valve torque table"]


@pytest.fixture(scope="module")
def scheduler() -> Iterator[TokenScheduler]:
    """Opens a scheduler with room for 30 items."""
    opened = TokenScheduler(workers=2, capacity_items=30)
    yield opened
    opened.stop()


@pytest.fixture(scope="module", params=[(BERT, 1), (BERT, 2), (MODERN_BERT, 1), (XLM_ROBERTA, 2)])
def scheduled(
    request: pytest.FixtureRequest, scheduler: TokenScheduler, tmp_path_factory: pytest.TempPathFactory
) -> ScheduledCrossEncoder:
    """Opens a model of each family, with one logit or with two."""
    family, logits = request.param
    folder = make_tiny_cross_encoder(tmp_path_factory.mktemp("cross"), logits=logits, family=family)
    return open_cross_encoder(ModelSource(str(folder)), scheduler)


async def test_rerankers_satisfy_their_protocols_and_agree(scheduled: ScheduledCrossEncoder) -> None:
    """Both views give the same scores in the order of the passages."""
    sync: Reranker = scheduled.encoder
    view: AsyncReranker = scheduled
    scores = await view.score("pump seal", _PASSAGES, None)
    found = sync.score("pump seal", _PASSAGES)
    assert found.dtype == np.float32
    assert scores.logits.dtype == np.float64
    np.testing.assert_array_equal(found, scores.logits.astype(np.float32))
    assert (sync.model_id, sync.revision) == (view.model_id, view.revision)


async def test_score_never_depends_on_neighbours(scheduled: ScheduledCrossEncoder) -> None:
    """RER-07: a pair has the same logit alone and among others, to the last bit."""
    together = (await scheduled.score("pump seal", _PASSAGES, None)).logits
    alone = [(await scheduled.score("pump seal", [passage], None)).logits[0] for passage in _PASSAGES]
    assert together.tolist() == alone
    assert len(set(alone)) == len(_PASSAGES)


async def test_pairs_made_beforehand_score_the_same(scheduled: ScheduledCrossEncoder) -> None:
    """Tokenized by itself and scored in pieces, a list has the same logits; what it costs is known afterwards."""
    view: AsyncReranker = scheduled
    whole = await view.score("pump seal", _PASSAGES, None)
    pairs = await view.tokenize("pump seal", _PASSAGES)
    assert sum(pair.token_count for pair in pairs) == whole.token_count
    pieces = [await view.score_pairs(pairs[start : start + 2], None) for start in (0, 2)]
    np.testing.assert_array_equal(np.concatenate([piece.logits for piece in pieces]), whole.logits)
    load = view.load()
    assert (load.workers, load.queued_pairs) == (2, 0)
    assert load.ns_per_token > 0.0


async def test_score_of_nothing_is_nothing(scheduled: ScheduledCrossEncoder) -> None:
    """No passages are no pairs."""
    scores = await scheduled.score("pump", [], None)
    assert (scores.pair_count, scores.token_count, scores.queue_ns, scores.compute_ns) == (0, 0, 0, 0)
    assert scheduled.encoder.score("pump", []).shape == (0,)


async def test_scores_say_what_they_cost(scheduled: ScheduledCrossEncoder) -> None:
    """Pairs, tokens, cuts and time are counted."""
    scores = await scheduled.score("pump", ["seal", "seal " * 200], None)
    assert (scores.pair_count, scores.truncated_count) == (2, 1)
    short, cut = scheduled.encoder.tokenization.pairs("pump", ["seal", "seal " * 200])
    assert scores.token_count == short.token_count + scheduled.encoder.tokenization.max_tokens
    assert cut.truncated
    assert scores.compute_ns > 0


async def test_one_failing_pair_leaves_the_whole_list_unscored(scheduled: ScheduledCrossEncoder) -> None:
    """RER-10: no made-up score ever stands among real ones."""
    with pytest.raises(RerankIncomplete) as failed:
        await scheduled.score("pump", ["seal", POISON, "soup"], None)
    assert (failed.value.scored_pairs, failed.value.asked_pairs) == (2, 3)
    assert failed.value.reason == "unavailable"
    assert isinstance(failed.value.__cause__, NonFiniteOutput)


async def test_late_list_is_unscored(scheduled: ScheduledCrossEncoder) -> None:
    """A deadline that has passed falls back for all."""
    with pytest.raises(RerankIncomplete, match="deadline"):
        await scheduled.score("pump", _PASSAGES, time.monotonic_ns() - 1)


async def test_full_queue_leaves_the_list_unscored(scheduled: ScheduledCrossEncoder) -> None:
    """A list that does not fit into the queue falls back for all."""
    with pytest.raises(RerankIncomplete, match="0 of 31 pairs"):
        await scheduled.score("pump", ["seal"] * 31, None)


async def test_two_logits_score_by_their_difference(tmp_path: Path, scheduler: TokenScheduler) -> None:
    """A classifier with two classes scores by how far "relevant" is ahead."""
    encoder = open_cross_encoder(ModelSource(str(make_tiny_cross_encoder(tmp_path, logits=2))), scheduler).encoder
    (pair,) = encoder.tokenization.pairs("pump", ["seal"])
    inputs = {
        "input_ids": pair.ids[None],
        "attention_mask": np.ones_like(pair.ids)[None],
        "token_type_ids": pair.type_ids[None],
    }
    heads = encoder.engine._session.run(inputs, "logits")[0].astype(np.float64)
    assert encoder.engine.run([pair]) == [heads[1] - heads[0]]


def test_query_that_would_be_cut_can_be_refused(scheduled: ScheduledCrossEncoder) -> None:
    """Who does not want a cut question is told the count and the limit."""
    limit = scheduled.encoder.tokenization.pair_query_limit
    scheduled.encoder.require_whole_query(" ".join(["pump"] * limit))
    with pytest.raises(QueryTooLong) as refused:
        scheduled.encoder.require_whole_query(" ".join(["pump"] * (limit + 1)))
    assert (refused.value.token_count, refused.value.limit_tokens) == (limit + 1, limit)


def test_bi_encoder_is_refused_as_a_cross_encoder(tmp_path: Path, scheduler: TokenScheduler) -> None:
    """A model that gives token states is refused with one sentence."""
    with pytest.raises(ModelUnsupported, match="choose a cross-encoder"):
        open_cross_encoder(ModelSource(str(make_tiny_bi_encoder(tmp_path))), scheduler)


def test_classifier_with_three_classes_is_refused(tmp_path: Path, scheduler: TokenScheduler) -> None:
    """Three classes are no score."""
    with pytest.raises(ModelUnsupported, match="not one logit"):
        open_cross_encoder(ModelSource(str(make_tiny_cross_encoder(tmp_path, logits=3))), scheduler)
