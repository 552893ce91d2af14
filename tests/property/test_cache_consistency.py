"""Random steps over tenants, replicas and a failing Redis: no reply is old, nobody else's, or inconsistent."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from bench._common.consistency.embedded import embedded_catalog
from bench._common.consistency.engines import WordEncoder
from bench._common.consistency.simulation import Plan, Report, simulation
from indexers.models import OneModel
from indexers.options import DenseModel, ShardKind
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from tests.fakes.qdrant_servicer import FakeQdrant, serving

_REPLICAS = 3


async def _simulated(plan: Plan, folder: Path, kind: ShardKind = ShardKind.EXACT) -> Report:
    async with (
        embedded_catalog(folder / "data", kind) as catalog,
        simulation(plan, [catalog] * _REPLICAS) as made,
    ):
        return await made.run()


def _share(report: Report, name: str, of: str) -> float:
    """Returns the share of one count among all that begin alike."""
    return report.hits.get(name, 0) / sum(count for other, count in report.hits.items() if other.startswith(of))


async def test_replicas_never_serve_what_is_old_or_of_others(tmp_path: Path) -> None:
    """Writes, restarts and Redis faults at random: no violation, and hits of every kind, or it would prove nothing."""
    report = await _simulated(Plan(steps=2500, seed=1), tmp_path)
    assert not report.violations, report.examples
    assert report.steps >= 2500
    assert _share(report, "answers equal memory", "answers ") > 0.03
    assert _share(report, "answers equal shared", "answers ") > 0.005
    assert _share(report, "answers similar memory", "answers ") > 0.003
    assert _share(report, "results memory", "results ") > 0.02
    assert _share(report, "query_embeddings shared", "query_embeddings ") > 0.003
    assert report.hits["answers none: evidence"] > 0
    assert {"restart", "settings"} <= report.kinds.keys()
    assert sum(count for kind, count in report.kinds.items() if kind.startswith("redis ")) > 20


async def test_trusted_answers_are_no_older_than_the_settings_allow(tmp_path: Path) -> None:
    """With `trust_ms` an answer may be out of date by that long, and by no more."""
    report = await _simulated(Plan(steps=800, seed=2, trust_ms=30, slow_s=0.06), tmp_path)
    assert not report.violations, report.examples
    assert report.hits["answers trusted"] > 0


async def test_replicas_of_a_shared_index_server_never_serve_what_is_old() -> None:
    """Each replica has its own view of an index server that others write to, and reads the newest epoch from it."""
    encoder = WordEncoder()
    model = DenseModel(encoder.model_id, encoder.revision, encoder.dim)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(FakeQdrant()))
        catalogs = []
        for _ in range(_REPLICAS):
            catalogs.append(QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), OneModel(model)))
            stack.push_async_callback(catalogs[-1].close)
        made = await stack.enter_async_context(simulation(Plan(steps=500, seed=3), catalogs))
        report = await made.run()
    assert not report.violations, report.examples
    assert _share(report, "answers equal memory", "answers ") > 0.03
    assert _share(report, "results memory", "results ") > 0.03
