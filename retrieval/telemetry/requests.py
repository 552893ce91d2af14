"""The one log line of a request: who, what, how long, where the time went, how it ended; never what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from retrieval.clock import Ledger, RerankReport
from retrieval.reuse import ReuseReport
from retrieval.route import GenerationReport
from retrieval.scope import Identity

_log = structlog.get_logger("headrace")


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that ended; `error` is there when its text is for our log only."""

    request_id: str
    method: str
    identity: Identity | None
    code: str
    duration_ns: int
    sizes: Mapping[str, int]
    ledger: Ledger | None
    error: BaseException | None
    reuse: ReuseReport | None = None  # of a whole answer


def log_request(ended: Ended) -> None:
    """Writes the line, as an error when the cause is to be looked at, otherwise as information."""
    fields: dict[str, object] = {
        "request_id": ended.request_id,
        "method": ended.method,
        "tenant": ended.identity.tenant if ended.identity else None,
        "key": ended.identity.key_name if ended.identity else None,
        "code": ended.code,
        "duration_ms": _ms(ended.duration_ns),
        **ended.sizes,
    }
    if ended.ledger is not None:
        fields |= _ledger_fields(ended.ledger)
    if ended.reuse is not None:
        fields |= _reuse_fields(ended.reuse)
    if ended.error is None:
        _log.info("request", **fields)
    else:
        _log.error("request", **fields, exc_info=ended.error)


def _ledger_fields(ledger: Ledger) -> dict[str, object]:
    return {
        "stages_ms": {cost.stage.value: _ms(cost.wall_ns) for cost in ledger.stages},
        "queue_ms": {cost.stage.value: _ms(cost.queue_ns) for cost in ledger.stages if cost.queue_ns},
        "compute_ms": {cost.stage.value: _ms(cost.compute_ns) for cost in ledger.stages if cost.compute_ns},
        "caches": {use.cache: use.tier or "miss" for use in ledger.caches},
        "degraded": list(ledger.degraded),
        "candidates": ledger.candidates,
        "query_tokens": ledger.query_tokens,
        "rerank": None if ledger.rerank is None else _rerank_fields(ledger.rerank),
        **(_generation_fields(ledger.generation) if ledger.generation else {}),
        **({"route": ledger.route.backend, "route_reason": ledger.route.reason} if ledger.route else {}),
    }


def _generation_fields(report: GenerationReport) -> dict[str, object]:
    return {
        "backend": report.backend,
        "backend_queue_ms": _ms(report.queue_ns),
        "first_token_ms": _ms(report.first_token_ns),
        "token_ms": _ms(report.token_ns),
        "generation_ms": _ms(report.total_ns),
        "attempts": [f"{attempt.backend}/{attempt.server}:{attempt.outcome.value}" for attempt in report.attempts],
    }


def _reuse_fields(reuse: ReuseReport) -> dict[str, object]:
    return {
        "reuse": reuse.reuse.value,
        "reuse_reason": reuse.reason,
        "answer_key": reuse.key,
        "answer_stored": reuse.stored,
        "answer_shadowed": reuse.shadowed,
    }


def _rerank_fields(report: RerankReport) -> dict[str, object]:
    return {
        "stop": report.stop,
        "pairs": report.pairs,
        "cached_pairs": report.cached_pairs,
        "tokens": report.tokens,
        "late_passages": report.late.passages,
        "late_computed": report.late.computed,
    }


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 3)
