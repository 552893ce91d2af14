"""The measurements of `bench.encode`, on a tiny model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench._common.encode.beside_bulk import measure_beside_bulk
from bench._common.encode.memory import measure_memory
from bench._common.encode.overhead import measure_overhead
from bench._common.encode.throughput import measure_throughput
from bench._common.encode.work import Parts, require_values, tokens_of
from encoders.errors import WorkExpired
from encoders.open import open_dense
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from encoders.types import Outcome
from tests.fakes.tiny_models import make_tiny_bi_encoder


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    """A tiny model behind two workers."""
    scheduler = TokenScheduler(workers=2, capacity_items=500)
    yield Parts.of(scheduler, open_dense(ModelSource(str(make_tiny_bi_encoder(tmp_path))), scheduler))
    scheduler.stop(timeout_s=5.0)


def test_texts_have_lengths_from_the_shortest_to_the_longest(parts: Parts) -> None:
    """Drawn the same way each time, and never above the model's limit."""
    items = parts.mixed(200, seed=1)
    counts = [item.token_count for item in items]
    assert (min(counts), parts.longest) == (8, 64)
    assert max(counts) <= 64
    assert [item.token_count for item in parts.mixed(200, seed=1)] == counts
    assert tokens_of(parts.long(3)) == 192


async def test_both_arms_of_the_throughput_encode_every_text(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio compares equal work."""
    seen: list[int] = []
    run = parts.engine.run
    monkeypatch.setattr(
        parts.engine, "run", lambda items: (seen.extend(one.token_count for one in items), run(items))[1]
    )
    found = await measure_throughput(parts, texts=40, rounds=1)
    total = tokens_of(parts.mixed(40, seed=1))
    warmed = tokens_of(parts.mixed(40, seed=1)[:10])
    assert sum(seen) == 4 * total + 2 * warmed
    assert found.share > 0.0
    assert found.threads == 2


async def test_other_measurements_give_figures(parts: Parts) -> None:
    """Each runs to its end and says what it measured."""
    beside = await measure_beside_bulk(parts, seconds=0.2)
    assert (beside.idle.count, beside.beside_bulk.count) == (8, 8)
    assert beside.limit_ms > beside.piece_ms > 0.0
    overhead = await measure_overhead(parts, embeddings=20)
    assert overhead.embedding_ms > overhead.run_ms > 0.0
    memory = await measure_memory(parts, calls=40)
    assert memory.end_bytes > 0


def test_failed_text_stops_the_run() -> None:
    """A rate of failures is no rate."""
    with pytest.raises(SystemExit, match="not encoded"):
        require_values([Outcome(None, WorkExpired(), 3, False, 0, 0)])
