"""Makes the figures of `bench.stages` from what was measured for each question. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench._common.statistics import Quantiles, quantiles


@dataclass(frozen=True, slots=True)
class Part:
    """One stage of one request."""

    wall_ns: int
    queue_ns: int
    compute_ns: int


@dataclass(frozen=True, slots=True)
class Served:
    """A request as its client and its server saw it."""

    client_ns: int
    server_ns: int
    stages: Mapping[str, Part]  # `other` among them


@dataclass(frozen=True, slots=True)
class Bare:
    """The calls that a request cannot do without, made bare."""

    tokenize_ns: int
    onnx_ns: int
    index_ns: int

    @property
    def total_ns(self) -> int:
        """All three."""
        return self.tokenize_ns + self.onnx_ns + self.index_ns


@dataclass(frozen=True, slots=True)
class Watched:
    """One stage of one request in this process: as the ledger has it, and as a watch around it has it."""

    ledger_ns: int
    outside_ns: int


@dataclass(frozen=True, slots=True)
class StageFigures:
    """What one stage costs."""

    wall: Quantiles
    queue_p50_ms: float
    compute_p50_ms: float
    share: float  # of the server's time, over all requests


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the ledger and the watch around a stage are apart."""

    difference_us: float  # median of outside less ledger
    ratio: float  # all of outside over all of the ledger
    agrees: bool


@dataclass(frozen=True, slots=True)
class StageReport:
    """All figures of a run."""

    requests: int
    client: Quantiles
    server: Quantiles
    transport_p50_ms: float  # client less server
    stages: Mapping[str, StageFigures]
    bare: Mapping[str, Quantiles]
    overhead_p50_ms: float  # p50 of the client's time less p50 of the bare calls
    paired_overhead_p50_ms: float  # median of the differences, question by question
    other_share: float
    other_p50_ms: float
    agreement: Mapping[str, Agreement]


_AGREES_SHARE = 0.05
_AGREES_US = 5.0  # two readings of a clock and two calls; a stage of a microsecond cannot be timed to 5 %


def report(served: Sequence[Served], bare: Sequence[Bare], watched: Sequence[Mapping[str, Watched]]) -> StageReport:
    """Returns the figures; the n-th of each list belongs to the same question."""
    client = np.array([one.client_ns for one in served], dtype=np.float64)
    server = np.array([one.server_ns for one in served], dtype=np.float64)
    calls = np.array([one.total_ns for one in bare], dtype=np.float64)
    stages = {name: _stage(name, served) for name in _names([one.stages for one in served])}
    return StageReport(
        requests=len(served),
        client=quantiles([one.client_ns for one in served]),
        server=quantiles([one.server_ns for one in served]),
        transport_p50_ms=float(np.median(client - server)) / 1e6,
        stages=stages,
        bare={
            "tokenize": quantiles([one.tokenize_ns for one in bare]),
            "onnx": quantiles([one.onnx_ns for one in bare]),
            "index": quantiles([one.index_ns for one in bare]),
            "all three": quantiles([one.total_ns for one in bare]),
        },
        overhead_p50_ms=float(np.median(client) - np.median(calls)) / 1e6,
        paired_overhead_p50_ms=float(np.median(client - calls)) / 1e6,
        other_share=stages["other"].share,
        other_p50_ms=stages["other"].wall.p50_ms,
        agreement={name: _agreement(name, watched) for name in _names(watched)},
    )


def _names(requests: Sequence[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for request in requests for name in request))


def _stage(name: str, served: Sequence[Served]) -> StageFigures:
    parts = [one.stages[name] for one in served if name in one.stages]
    return StageFigures(
        wall=quantiles([part.wall_ns for part in parts]),
        queue_p50_ms=quantiles([part.queue_ns for part in parts]).p50_ms,
        compute_p50_ms=quantiles([part.compute_ns for part in parts]).p50_ms,
        share=sum(part.wall_ns for part in parts) / max(1, sum(one.server_ns for one in served)),
    )


def _agreement(name: str, watched: Sequence[Mapping[str, Watched]]) -> Agreement:
    pairs = [request[name] for request in watched if name in request]
    difference_us = float(np.median([pair.outside_ns - pair.ledger_ns for pair in pairs])) / 1e3
    ratio = sum(pair.outside_ns for pair in pairs) / max(1, sum(pair.ledger_ns for pair in pairs))
    return Agreement(difference_us, ratio, abs(ratio - 1.0) <= _AGREES_SHARE or abs(difference_us) <= _AGREES_US)
