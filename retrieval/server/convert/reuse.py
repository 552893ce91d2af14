"""What the answer cache did, as a message."""

from __future__ import annotations

from headrace.v1 import retrieval_pb2
from retrieval.reuse import EvidenceReport, Reuse, ReuseReport, RiskReport
from retrieval.server.convert.ledgers import TIERS

_KINDS = {
    Reuse.NONE: retrieval_pb2.REUSE_KIND_UNSPECIFIED,
    Reuse.EQUAL: retrieval_pb2.REUSE_KIND_EQUAL,
    Reuse.SIMILAR: retrieval_pb2.REUSE_KIND_SIMILAR,
}


def reuse_to_pb(report: ReuseReport) -> retrieval_pb2.AnswerReuse:
    """Returns the report as a message; gates that were not asked are absent."""
    return retrieval_pb2.AnswerReuse(
        kind=_KINDS[report.reuse],
        reason=report.reason,
        key=report.key,
        tier=TIERS[report.tier],
        age_ms=report.age_ms,
        similarity=report.similarity,
        evidence=None if report.evidence is None else _evidence(report.evidence),
        risk=None if report.risk is None else _risk(report.risk),
        stored=report.stored,
        shadowed=report.shadowed,
    )


def _evidence(report: EvidenceReport) -> retrieval_pb2.EvidenceCheck:
    return retrieval_pb2.EvidenceCheck(
        cited=report.cited,
        found=report.found,
        weakest_rank=report.weakest_rank,
        newcomers=report.newcomers,
        trusted=report.trusted,
    )


def _risk(report: RiskReport) -> retrieval_pb2.RiskCheck:
    return retrieval_pb2.RiskCheck(
        error_estimate=report.error_estimate,
        error_bound=report.error_bound,
        max_error_rate=report.max_error_rate,
        labels=report.labels,
    )
