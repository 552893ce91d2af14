"""The figures of the stage benchmark, and its second watch."""

from __future__ import annotations

import time

import pytest

from bench._common.outside import OutsideClock
from bench._common.stage_figures import Bare, Part, Served, Watched, report
from retrieval.clock import Stage

MS = 1_000_000


def _served(embed_ms: int) -> Served:
    stages = {"embed": Part(embed_ms * MS, MS // 2, embed_ms * MS - MS), "other": Part(MS, 0, 0)}
    return Served(client_ns=(embed_ms + 3) * MS, server_ns=(embed_ms + 1) * MS, stages=stages)


def test_report_takes_the_bare_calls_off_the_clients_time() -> None:
    """Transport, scheduler and all other stages are what is above the bare calls."""
    figures = report(
        [_served(4), _served(6), _served(8)],
        [Bare(1 * MS, 2 * MS, 1 * MS)] * 3,
        [{"embed": Watched(4 * MS, 4 * MS)}] * 3,
    )
    assert figures.bare["all three"].p50_ms == 4.0
    assert figures.overhead_p50_ms == pytest.approx(5.0)
    assert figures.paired_overhead_p50_ms == pytest.approx(5.0)
    assert figures.transport_p50_ms == pytest.approx(2.0)
    assert figures.stages["embed"].wall.p50_ms == 6.0
    assert figures.stages["embed"].queue_p50_ms == 0.5
    assert figures.other_share == pytest.approx(3 / 21)
    assert sum(stage.share for stage in figures.stages.values()) == pytest.approx(1.0)


def test_report_says_where_ledger_and_watch_are_apart() -> None:
    """5 % of the stage, or a few microseconds, are what timing itself costs."""
    watched = {"embed": Watched(4 * MS, 5 * MS), "lookup": Watched(1_000, 2_500), "search": Watched(2 * MS, 2 * MS)}
    found = report([_served(4)], [Bare(1, 1, 1)], [watched]).agreement
    assert {name: one.agrees for name, one in found.items()} == {"embed": False, "lookup": True, "search": True}
    assert found["embed"].ratio == pytest.approx(1.25)


def test_outside_clock_times_what_the_clock_charges() -> None:
    """The watch stands around the stage, so it never sees less; the clock itself works as ever."""
    clock = OutsideClock()
    with clock.stage(Stage.FUSE):
        until = time.monotonic_ns() + MS
        while time.monotonic_ns() < until:
            pass
    costs, total_ns = clock.costs()
    walls = {cost.stage: cost.wall_ns for cost in costs}
    assert sum(walls.values()) == total_ns
    assert clock.outside_ns[Stage.FUSE] >= MS
    assert walls[Stage.FUSE] >= MS


def test_outside_clock_leaves_errors_alone() -> None:
    """A stage that fails is timed, and its error goes on."""
    clock = OutsideClock()
    with pytest.raises(KeyError), clock.stage(Stage.SEARCH):
        raise KeyError("gone")
    assert Stage.SEARCH in clock.outside_ns
