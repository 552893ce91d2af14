"""Late interaction through the whole request path: the bundled encoder with token vectors of a random projection."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

import encoders
from encoders.late.codec import LevelCodec
from encoders.late.tokens import LATE_FILE, TokenProjection
from encoders.types import WorkClass
from indexers.types import CollectionKey, Document
from retrieval.clock import RerankReport, StageClock
from retrieval.deadline import Deadline
from retrieval.live import LiveSettings
from retrieval.server.app import App, build
from retrieval.settings.load import Loaded, load_settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Mode, Retrieved, RetrieveRequest

_BUNDLED = Path(encoders.__file__).parent / "bundled" / "minilm-l6"
_WORDS, _STATES, _DIM = 30_522, 384, 64
TEXTS = {
    "valve": "Valve 7 is tightened to 40 newton metres. Use a torque wrench.",
    "pump": "The pump seal is replaced every two years. Order part K16 in advance.",
    "soup": "Tomato soup is made of tomatoes, onions and a little salt.",
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[tuple[App, LiveSettings]]:
    """An application with three documents of the tenant `acme` in `docs`."""
    model = tmp_path / "model"
    shutil.copytree(_BUNDLED, model)
    turned, _ = np.linalg.qr(np.random.default_rng(7).standard_normal((_STATES, _DIM)))
    weights = np.ones(_WORDS, dtype=np.float32)
    weights[:1000] = 0.0  # special tokens and punctuation
    center = np.zeros(_STATES, dtype=np.float32)
    TokenProjection(turned.astype(np.float32), center, weights, LevelCodec(_DIM, 4)).save(model / LATE_FILE)

    def load() -> Loaded:
        return load_settings(None, {}, {"data.folder": str(tmp_path / "data"), "encoders.dense.model": str(model)})

    live = LiveSettings(load(), load)
    async with build(live) as built:
        index = await built.engines.catalog.create(CollectionKey("acme", "docs"), {}, "")
        documents = [Document(name, name, text) for name, text in TEXTS.items()]
        await built.indexer_of(index).upsert(documents, WorkClass.BULK)
        yield built, live


async def _retrieve(app: tuple[App, LiveSettings], **asked: object) -> tuple[Retrieved, RerankReport]:
    built, live = app
    thresholds = resolve(live.current, Overrides(**asked))  # type: ignore[arg-type]
    request = RetrieveRequest("r", "acme", "docs", "How tight is valve 7?", None, thresholds)
    found = await built.pipeline.retrieve(request, StageClock(), Deadline.after(30))
    assert found.ledger.rerank is not None
    return found, found.ledger.rerank


async def test_hits_are_ordered_by_late_interaction_as_a_matter_of_course(app: tuple[App, LiveSettings]) -> None:
    """Every hit has a late score from what indexing stored, and the score is the mean that the settings weigh."""
    found, report = await _retrieve(app)
    assert found.hits[0].passage.document_id == "valve"
    assert (report.stop, report.late.passages, report.late.computed, report.late.skipped) == ("all", 3, 0, "")
    assert not found.ledger.degraded
    weights = app[1].current.rerank
    for hit in found.hits:
        assert hit.parts.late is not None
        assert hit.parts.fused is not None
        total = weights.first_stage_weight * hit.parts.fused + weights.late.weight * hit.parts.late
        assert hit.score == pytest.approx(total / (weights.first_stage_weight + weights.late.weight))


async def test_sparse_mode_and_rerank_off_leave_the_fused_order(app: tuple[App, LiveSettings]) -> None:
    """Without a query vector late interaction is left out and said so; switched off, nothing is reported."""
    found, report = await _retrieve(app, mode=Mode.SPARSE)
    assert (report.stop, report.late.skipped) == (None, "sparse_mode")
    assert all(hit.parts.late is None and hit.score == hit.parts.fused for hit in found.hits)
    built, live = app
    thresholds = resolve(live.current, Overrides(rerank=False))
    request = RetrieveRequest("r", "acme", "docs", "How tight is valve 7?", None, thresholds)
    plain = await built.pipeline.retrieve(request, StageClock(), Deadline.after(30))
    assert plain.ledger.rerank is None
    assert all(hit.parts.late is None for hit in plain.hits)
