"""How a backend was chosen and how the answer came about, as messages."""

from __future__ import annotations

from headrace.v1 import common_pb2
from retrieval.route import Attempt, Candidate, GenerationReport, Outcome, RouteReport

_OUTCOMES = {outcome: common_pb2.AttemptOutcome.Value(f"ATTEMPT_OUTCOME_{outcome.name}") for outcome in Outcome}


def route_to_pb(report: RouteReport) -> common_pb2.RouteReport:
    """Returns the route as a message."""
    return common_pb2.RouteReport(
        backend=report.backend,
        reason=report.reason,
        complexity=report.complexity,
        rules=report.rules,
        candidates=[_candidate(candidate) for candidate in report.candidates],
    )


def generation_to_pb(report: GenerationReport) -> common_pb2.GenerationReport:
    """Returns how an answer came about as a message."""
    return common_pb2.GenerationReport(
        backend=report.backend,
        queue_ns=report.queue_ns,
        first_token_ns=report.first_token_ns,
        token_ns=report.token_ns,
        total_ns=report.total_ns,
        attempts=[_attempt(attempt) for attempt in report.attempts],
        passages=report.passages,
    )


def _candidate(candidate: Candidate) -> common_pb2.RouteCandidate:
    return common_pb2.RouteCandidate(
        backend=candidate.backend,
        excluded=candidate.excluded,
        score=candidate.score,
        first_token_ms=candidate.first_token_ms,
        total_ms=candidate.total_ms,
        cost=candidate.cost,
        context_tokens=candidate.context_tokens,
    )


def _attempt(attempt: Attempt) -> common_pb2.Attempt:
    return common_pb2.Attempt(
        backend=attempt.backend,
        server=attempt.server,
        outcome=_OUTCOMES[attempt.outcome],
        hedge=attempt.hedge,
        queue_ns=attempt.queue_ns,
        first_token_ns=attempt.first_token_ns,
    )
