"""Ledgers and epochs as messages."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.v1 import common_pb2
from indexers.types import Epoch
from rerank.types import Stop
from retrieval.clock import Ledger, RerankReport, Stage, StageCost
from retrieval.server.convert.routes import generation_to_pb, route_to_pb

_STOPS: Mapping[Stop | None, common_pb2.RerankStop.ValueType] = {
    "all": common_pb2.RERANK_STOP_ALL,
    "settled": common_pb2.RERANK_STOP_SETTLED,
    "deadline": common_pb2.RERANK_STOP_DEADLINE,
    "gate": common_pb2.RERANK_STOP_GATE,
    "unavailable": common_pb2.RERANK_STOP_UNAVAILABLE,
    None: common_pb2.RERANK_STOP_UNSPECIFIED,
}
TIERS: Mapping[str, common_pb2.CacheTier.ValueType] = {
    "": common_pb2.CACHE_TIER_UNSPECIFIED,
    "memory": common_pb2.CACHE_TIER_MEMORY,
    "shared": common_pb2.CACHE_TIER_SHARED,
    "flight": common_pb2.CACHE_TIER_FLIGHT,
}
_STAGES = {stage: common_pb2.Stage.Value(f"STAGE_{stage.name}") for stage in Stage}


def ledger_to_pb(ledger: Ledger) -> common_pb2.Ledger:
    """Returns the ledger as a message."""
    return common_pb2.Ledger(
        stages=[_cost(cost) for cost in ledger.stages],
        total_ns=ledger.total_ns,
        degraded=ledger.degraded,
        caches=[common_pb2.CacheUse(cache=use.cache, hit=use.hit, tier=TIERS[use.tier]) for use in ledger.caches],
        rerank=None if ledger.rerank is None else _rerank(ledger.rerank),
        query_tokens=ledger.query_tokens,
        query_truncated=ledger.query_truncated,
        candidates=ledger.candidates,
        first_delta_ns=ledger.first_delta_ns,
        route=None if ledger.route is None else route_to_pb(ledger.route),
        generation=None if ledger.generation is None else generation_to_pb(ledger.generation),
    )


def epoch_to_pb(epoch: Epoch) -> common_pb2.Epoch:
    """Returns the epoch as a message."""
    return common_pb2.Epoch(generation=epoch.generation, write_sequence=epoch.write_sequence)


def _cost(cost: StageCost) -> common_pb2.StageCost:
    return common_pb2.StageCost(
        stage=_STAGES[cost.stage], wall_ns=cost.wall_ns, queue_ns=cost.queue_ns, compute_ns=cost.compute_ns
    )


def _rerank(report: RerankReport) -> common_pb2.RerankReport:
    late = report.late
    return common_pb2.RerankReport(
        model=report.model,
        pairs=report.pairs,
        tokens=report.tokens,
        stop=_STOPS[report.stop],
        cached_pairs=report.cached_pairs,
        late=common_pb2.LateReport(
            model=late.model, passages=late.passages, computed=late.computed, skipped=late.skipped
        ),
    )
