"""The rerank stage: late interaction, then the cross-encoder, each for the whole list or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from encoders.errors import WorkExpired
from encoders.late.codec import LevelCodec, max_similarities
from encoders.types import EncodedPassage, EncodedQuery, Outcome, WorkClass
from indexers.errors import IndexUnavailable
from indexers.types import Passage
from rerank.errors import RerankIncomplete
from rerank.stopping import Line, StopRule
from rerank.types import AsyncReranker, Load
from retrieval.caching import token_codes
from retrieval.caching.s3fifo import S3Fifo
from retrieval.caching.tiered import Tiered
from retrieval.clock import Stage, StageClock
from retrieval.deadline import Deadline
from retrieval.settings import Settings
from retrieval.stages.embed import DenseQuery
from retrieval.stages.late import LateInteraction
from retrieval.stages.rerank import Cascade, Question
from retrieval.thresholds import Overrides, resolve
from retrieval.trace import Trace
from retrieval.types import Hit, RetrieveRequest, ScoreParts, Thresholds
from tests.fakes.encoders import HashEncoder, word_vectors
from tests.fakes.rerankers import TOKENS, ScriptedReranker
from tests.fakes.scopes import memory_scores, scope

CODEC = LevelCodec(32, 4)
SCOPE = scope()
TEXTS = ("soup of the day", "pump seal", "valve torque table", "cats and dogs")
WEIGHTS = {"model": "m", "first_stage_weight": 0.4, "late": {"weight": 0.6}}
SETTINGS = Settings.model_validate({"rerank": WEIGHTS})


@dataclass
class StoredIndex:
    """Knows the late scores of some texts; anything else has no codes here."""

    scores: dict[str, float] = field(default_factory=dict)
    failure: Exception | None = None
    waits: bool = False

    async def late_scores(self, query: NDArray[np.float32], passages: Sequence[Passage]) -> NDArray[np.float32]:
        if self.failure is not None:
            raise self.failure
        if self.waits:
            await asyncio.Event().wait()
        return np.array([self.scores.get(passage.text, np.nan) for passage in passages], dtype=np.float32)


class LateEncoder(HashEncoder):
    """Encodes passages too late."""

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[EncodedPassage]]:
        return [Outcome(None, WorkExpired(), 1, False, 1, 0) for _ in texts]


@dataclass
class Rig:
    """A cascade with what it works on."""

    index: StoredIndex = field(default_factory=StoredIndex)
    encoder: HashEncoder = field(default_factory=lambda: HashEncoder(codec=CODEC))
    cross: AsyncReranker | None = None
    thresholds: Thresholds = field(default_factory=lambda: resolve(SETTINGS, Overrides(top_k=4)))
    query: str = "valve torque"
    tokens: bool = True
    trace: Trace = field(default_factory=lambda: Trace(StageClock()))
    cascade: Cascade | None = None

    async def rerank(self, hits: list[Hit], seconds: float = 10.0) -> list[Hit]:
        """Runs the stage once, with a new trace."""
        codes = Tiered(S3Fifo("codes", 1_000_000, token_codes.size_of))
        scores = memory_scores()
        self.cascade = self.cascade or Cascade(LateInteraction(codes), self.cross, scores)
        self.trace = Trace(StageClock())
        request = RetrieveRequest("r", "acme", "docs", self.query, None, self.thresholds)
        vectors = word_vectors(self.query, CODEC.dim) / np.float32(max(1, len(self.query.split())))
        dense = DenseQuery(EncodedQuery(np.ones(1, np.float32), vectors if self.tokens else None), 2, False)
        question = Question(request, dense, self.encoder, self.index, SCOPE)  # type: ignore[arg-type]
        with self.trace.clock.stage(Stage.RERANK):
            return await self.cascade.rerank(question, hits, self.trace, Deadline.after(seconds))


def hits_of(*texts: str) -> list[Hit]:
    """Returns hits in this order, with fused scores from 0.9 down by 0.1."""
    return [_hit(text, 0.9 - 0.1 * place) for place, text in enumerate(texts)]


def _hit(text: str, score: float) -> Hit:
    passage = Passage(text, "d", "", (), text, 0, len(text), 0, 0, {})
    return Hit(passage, score, ScoreParts(dense=score, fused=score))


def texts_of(hits: list[Hit]) -> list[str]:
    """Returns the texts in their order."""
    return [hit.passage.text for hit in hits]


async def test_late_interaction_reorders_by_the_mean_of_raw_scores() -> None:
    """Stored codes are compared, the score is the weighted mean, and the reply says how many were scored."""
    rig = Rig(StoredIndex(dict.fromkeys(TEXTS, 0.1) | {"valve torque table": 0.9}))
    found = await rig.rerank(hits_of(*TEXTS))
    assert texts_of(found)[0] == "valve torque table"
    assert found[0].score == pytest.approx(0.4 * 0.7 + 0.6 * 0.9)
    assert found[0].parts.late == pytest.approx(0.9)
    assert found[0].parts.fused == pytest.approx(0.7)
    report = rig.trace.rerank
    assert report is not None
    assert (report.model, report.stop, report.pairs) == ("", "all", 0)
    assert (report.late.model, report.late.passages, report.late.computed) == ("hash", 4, 0)


async def test_late_interaction_computes_what_is_not_stored_once() -> None:
    """Codes that are missing are computed ahead of bulk work, kept by text, and give what the codec gives."""
    rig = Rig(StoredIndex({"soup of the day": 0.2}))
    found = {hit.passage.text: hit for hit in await rig.rerank(hits_of(*TEXTS, "pump seal"))}
    assert rig.encoder.texts == ["pump seal", "valve torque table", "cats and dogs"]
    assert rig.encoder.work_classes == [WorkClass.ONLINE]
    assert rig.trace.rerank is not None
    assert (rig.trace.rerank.late.passages, rig.trace.rerank.late.computed) == (5, 3)
    query = word_vectors("valve torque", CODEC.dim) / np.float32(2)
    decoded = CODEC.decode(CODEC.encode(word_vectors("valve torque table", CODEC.dim)))
    expected = max_similarities(query, decoded, np.array([3]))[0]
    assert found["valve torque table"].parts.late == pytest.approx(float(expected))
    await rig.rerank(hits_of(*TEXTS))
    assert rig.trace.rerank.late.computed == 0
    assert len(rig.encoder.texts) == 3


async def test_late_interaction_without_caches_computes_again() -> None:
    """A request that wants no cache neither reads nor fills it."""
    rig = Rig(thresholds=resolve(SETTINGS, Overrides(top_k=4, cache=False)))
    for _ in range(2):
        await rig.rerank(hits_of("pump seal"))
    assert rig.encoder.texts == ["pump seal", "pump seal"]


@pytest.mark.parametrize(
    ("index", "encoder", "reason"),
    [
        (StoredIndex(failure=IndexUnavailable("qdrant", "down")), HashEncoder(codec=CODEC), "unavailable"),
        (StoredIndex(waits=True), HashEncoder(codec=CODEC), "deadline"),
        (StoredIndex({"pump seal": 0.9}), HashEncoder(codec=CODEC, poison="soup"), "unavailable"),
        (StoredIndex({"pump seal": 0.9}), HashEncoder(codec=CODEC, refusals=1), "unavailable"),
        (StoredIndex({"pump seal": 0.9}), LateEncoder(codec=CODEC), "deadline"),
    ],
)
async def test_late_interaction_that_cannot_score_all_keeps_the_whole_order(
    index: StoredIndex, encoder: HashEncoder, reason: str
) -> None:
    """RER-10: no made-up score among real ones; the step down is named, and no pair is scored on top of it."""
    cross = ScriptedReranker(lambda text: 1.0)
    rig = Rig(index, encoder, cross)
    before = hits_of(*TEXTS)
    assert await rig.rerank(before, seconds=0.05 if index.waits else 10.0) == before
    ledger = rig.trace.ledger()
    assert ledger.degraded == (f"rerank_{reason}",)
    assert ledger.rerank is not None
    assert (ledger.rerank.stop, ledger.rerank.late.passages) == (reason, 0)
    assert cross.pieces == []


@pytest.mark.parametrize(
    ("rig", "reason"),
    [
        (Rig(tokens=False), "model_without_token_vectors"),
        (Rig(query=""), "query_without_tokens"),
        (Rig(thresholds=replace(resolve(SETTINGS, Overrides()), late=False)), "disabled"),
    ],
)
async def test_late_interaction_that_takes_no_part_is_said_and_is_no_step_down(rig: Rig, reason: str) -> None:
    """The order and the scores stay as they were."""
    before = hits_of(*TEXTS)
    assert await rig.rerank(before) == before
    ledger = rig.trace.ledger()
    assert ledger.degraded == ()
    assert ledger.rerank is not None
    assert (ledger.rerank.stop, ledger.rerank.late.skipped) == (None, reason)


async def test_sparse_mode_is_reranked_by_the_cross_encoder_alone() -> None:
    """Without a query vector nothing is embedded for late interaction; the scores of both weigh what they weigh."""
    rig = Rig(cross=ScriptedReranker(lambda text: 0.0))
    await rig.rerank([])
    assert rig.cascade is not None
    thresholds = rig.thresholds
    assert rig.cascade.depth(thresholds, None) == thresholds.rerank_depth
    assert Cascade(rig.cascade._late, None, memory_scores(0)).depth(thresholds, None) == 0
    request = RetrieveRequest("r", "acme", "docs", "q", None, thresholds)
    trace = Trace(StageClock())
    with trace.clock.stage(Stage.RERANK):
        question = Question(request, None, rig.encoder, rig.index, SCOPE)  # type: ignore[arg-type]
        [hit] = await rig.cascade.rerank(question, hits_of("soup"), trace, Deadline.after(10))
    assert hit.score == pytest.approx((0.4 * 0.9 + 1.0 * 0.5) / 1.4)
    assert trace.rerank is not None
    assert (trace.rerank.stop, trace.rerank.late.skipped) == ("all", "sparse_mode")


async def test_cross_encoder_refines_and_every_score_is_of_one_kind() -> None:
    """Its opinion moves the passage; the score is the mean of all three; tokens and pairs are reported."""
    rig = Rig(
        StoredIndex(dict.fromkeys(TEXTS, 0.5)), cross=ScriptedReranker(lambda text: 9.0 if "cats" in text else -9)
    )
    found = await rig.rerank(hits_of(*TEXTS))
    assert texts_of(found) == ["cats and dogs", "soup of the day", "pump seal", "valve torque table"]
    opinion = 1 / (1 + np.exp(-9.0))
    assert found[0].parts.rerank == pytest.approx(opinion)
    assert found[0].score == pytest.approx((0.4 * 0.6 + 0.6 * 0.5 + 1.0 * opinion) / 2.0)
    report = rig.trace.rerank
    assert report is not None
    assert (report.model, report.pairs, report.tokens, report.stop) == ("scripted", 4, 4 * TOKENS, "all")
    again = await rig.rerank(hits_of(*TEXTS))
    assert again == found
    assert rig.trace.rerank is not None
    assert (rig.trace.rerank.tokens, rig.trace.rerank.cached_pairs) == (0, 4)


async def test_cross_encoder_that_stops_early_returns_what_it_scored() -> None:
    """When the top is settled, every hit that is returned has a score of its own."""
    texts = [f"passage {place}" for place in range(40)]
    rule = replace(resolve(SETTINGS, Overrides()).stop_rule, tolerance=50.0)
    thresholds = replace(resolve(SETTINGS, Overrides(top_k=3, rerank_depth=40)), stop_rule=rule)
    rig = Rig(StoredIndex(dict.fromkeys(texts, 0.5)), cross=ScriptedReranker(lambda text: 0.0), thresholds=thresholds)
    found = await rig.rerank([_hit(text, 0.9 - 0.01 * place) for place, text in enumerate(texts)])
    assert rig.trace.rerank is not None
    assert rig.trace.rerank.stop == "settled"
    assert 3 <= len(found) == rig.trace.rerank.pairs < 40
    assert all(hit.parts.rerank is not None for hit in found)
    assert rig.trace.ledger().degraded == ()


async def test_cross_encoder_is_left_out_when_the_best_is_certain() -> None:
    """A lead above the gate's margin costs no pair; the scores are those of the stages before."""
    thresholds = replace(resolve(SETTINGS, Overrides(top_k=4)), gate_margin=0.3)
    cross = ScriptedReranker(lambda text: 0.0)
    rig = Rig(StoredIndex(dict.fromkeys(TEXTS, 0.0) | {"pump seal": 0.9}), cross=cross, thresholds=thresholds)
    found = await rig.rerank(hits_of(*TEXTS))
    assert rig.trace.rerank is not None
    assert (rig.trace.rerank.stop, cross.pieces) == ("gate", [])
    assert texts_of(found)[0] == "pump seal"
    assert all(hit.parts.rerank is None for hit in found)
    assert rig.trace.ledger().degraded == ()


@pytest.mark.parametrize("reason", ["deadline", "unavailable"])
async def test_cross_encoder_that_fails_keeps_the_late_order_for_all(reason: str) -> None:
    """RER-10: the list is as late interaction left it, and the reply says what was spent and why it ended."""
    scores = {text: 0.2 * place for place, text in enumerate(TEXTS)}
    failing = ScriptedReranker(lambda text: 0.0, failure=RerankIncomplete(reason, 2, 4, 2 * TOKENS))  # type: ignore[arg-type]
    found = await (rig := Rig(StoredIndex(scores), cross=failing)).rerank(hits_of(*TEXTS))
    assert found == await Rig(StoredIndex(scores)).rerank(hits_of(*TEXTS))
    ledger = rig.trace.ledger()
    assert ledger.degraded == (f"rerank_{reason}",)
    assert ledger.rerank is not None
    assert (ledger.rerank.stop, ledger.rerank.pairs, ledger.rerank.tokens) == (reason, 2, 2 * TOKENS)


class SlowingReranker(ScriptedReranker):
    """Costs nothing at first, and more than anybody has once `fast_pieces` pieces were begun."""

    fast_pieces = 0

    def load(self) -> Load:
        return Load(2, 1.0 if len(self.pieces) < self.fast_pieces else 1e15, 0)


@pytest.mark.parametrize(("fast_pieces", "step"), [(0, "rerank_deadline"), (4, "rerank_shallower")])
async def test_cross_encoder_that_has_no_time_for_all_says_so(fast_pieces: int, step: str) -> None:
    """Not even the result: nothing is spent. Some more than the result: those are scored and returned."""
    texts = [f"passage {place}" for place in range(50)]
    rule = StopRule(0.0, (Line(0.0, 0.0, 0.0, tuple(np.linspace(-50.0, 50.0, 8).tolist())),))
    thresholds = replace(resolve(SETTINGS, Overrides(top_k=3, rerank_depth=50)), stop_rule=rule)
    cross = SlowingReranker(lambda text: 0.0)
    cross.fast_pieces = fast_pieces
    rig = Rig(StoredIndex(dict.fromkeys(texts, 0.5)), cross=cross, thresholds=thresholds)
    found = await rig.rerank([_hit(text, 0.9) for text in texts])
    ledger = rig.trace.ledger()
    assert ledger.degraded == (step,)
    assert ledger.rerank is not None
    assert ledger.rerank.stop == "deadline"
    if step == "rerank_deadline":
        assert (len(found), cross.pieces) == (50, [])
        assert all(hit.parts.rerank is None for hit in found)
    else:
        assert 3 <= len(found) == ledger.rerank.pairs < 50
        assert all(hit.parts.rerank is not None for hit in found)


async def test_final_score_never_depends_on_neighbours() -> None:
    """RER-07: a passage has the same score alone and among others, through both steps."""
    scores = {text: 0.1 + 0.2 * place for place, text in enumerate(TEXTS)}
    cross = ScriptedReranker(lambda text: float(len(text)) - 12.0)
    together = {
        hit.passage.text: hit.score for hit in await Rig(StoredIndex(scores), cross=cross).rerank(hits_of(*TEXTS))
    }
    for hit in hits_of(*TEXTS):
        [alone] = await Rig(StoredIndex(scores), cross=cross).rerank([hit])
        assert alone.score == together[hit.passage.text]
