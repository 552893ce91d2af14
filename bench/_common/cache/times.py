"""The times of hits beside the echo, and what the issue asks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import Cell, print_table
from headrace.v1 import common_pb2
from headrace.v1 import retrieval_pb2 as wire

ECHO = "echo"


@dataclass(frozen=True, slots=True)
class Timed:
    """One call."""

    question: str
    taken_ns: int
    completed: wire.Completed  # how the stream ended


@dataclass(frozen=True, slots=True)
class WayFigures:
    """One way to serve."""

    times: Quantiles
    beyond_echo_p50_ms: float
    ratio_to_echo: float  # of the medians
    server_p50_ms: float  # by the ledger: from the request's arrival until its last event was made
    stages_p50_ms: Mapping[str, float]
    left_out: int  # calls whose reply was of another kind than the way's


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """All ways, the echo first."""

    questions: int
    ways: Mapping[str, WayFigures]

    @property
    def targets(self) -> Sequence[tuple[str, float, float]]:
        """What is asked: name, measured, and the most that it may be."""
        ways = self.ways
        return (
            ("equal, evidence checked by a search: ms beyond the echo", ways["evidence"].beyond_echo_p50_ms, 3.0),
            ("equal, trusted: times the echo", ways["trusted"].ratio_to_echo, 1.5),
            ("from the shared tier: ms more", ways["shared"].times.p50_ms - ways["result"].times.p50_ms, 2.0),
        )


def latency_report(timed: Mapping[str, Sequence[Timed]], left_out: Mapping[str, int], questions: int) -> LatencyReport:
    """Returns the figures of all calls."""
    echo = quantiles([one.taken_ns for one in timed[ECHO]])
    names = sorted(timed, key=lambda name: name != ECHO)
    return LatencyReport(questions, {name: _figures(timed[name], echo, left_out.get(name, 0)) for name in names})


def _figures(calls: Sequence[Timed], echo: Quantiles, left_out: int) -> WayFigures:
    times = quantiles([one.taken_ns for one in calls])
    ledgers = [one.completed.ledger for one in calls]
    stages: dict[str, list[int]] = {}
    for ledger in ledgers:
        for cost in ledger.stages:
            stages.setdefault(common_pb2.Stage.Name(cost.stage).removeprefix("STAGE_").lower(), []).append(cost.wall_ns)
    return WayFigures(
        times=times,
        beyond_echo_p50_ms=times.p50_ms - echo.p50_ms,
        ratio_to_echo=times.p50_ms / echo.p50_ms,
        server_p50_ms=float(np.median([ledger.total_ns for ledger in ledgers])) / 1e6,
        stages_p50_ms={name: float(np.median(walls)) / 1e6 for name, walls in stages.items()},
        left_out=left_out,
    )


def print_latency(report: LatencyReport) -> None:
    """Prints the tables."""
    rows: list[list[Cell]] = [
        [
            name,
            one.times.p50_ms,
            one.times.p95_ms,
            one.beyond_echo_p50_ms,
            one.ratio_to_echo,
            one.times.count,
            one.left_out,
        ]
        for name, one in report.ways.items()
    ]
    columns = ("way", "p50", "p95", "p50 beyond echo", "times the echo", "calls", "left out")
    print_table(f"A whole stream over gRPC, ms, {report.questions} questions", columns, rows)
    ways = {name: one for name, one in report.ways.items() if one.stages_p50_ms}
    stages = dict.fromkeys(stage for one in ways.values() for stage in one.stages_p50_ms)
    table: list[list[Cell]] = [[stage, *(one.stages_p50_ms.get(stage) for one in ways.values())] for stage in stages]
    table.append(["the ledger's whole", *(one.server_p50_ms for one in ways.values())])
    print_table("Stages on the server, p50, ms", ("stage", *ways), table)
    targets: list[list[Cell]] = [[name, value, most] for name, value, most in report.targets]
    print_table("What is asked", ("", "measured", "at most"), targets)
