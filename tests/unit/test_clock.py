"""The stopwatch of one request."""

from __future__ import annotations

import pytest

from retrieval.clock import Ledger, Stage, StageClock, StageCost


def test_clock_refuses_nested_and_repeated_stages() -> None:
    """A stage is entered at most once, and never inside another."""
    clock = StageClock()
    with clock.stage(Stage.EMBED), pytest.raises(RuntimeError), clock.stage(Stage.SEARCH):
        pass
    with pytest.raises(RuntimeError), clock.stage(Stage.EMBED):
        pass


def test_clock_charges_a_stage_that_raises() -> None:
    """The time of a stage that fails is charged to it all the same."""
    clock = StageClock()
    with pytest.raises(ValueError, match="inside"), clock.stage(Stage.EMBED):
        raise ValueError("inside")
    assert [cost.stage for cost in clock.costs()[0]] == [Stage.EMBED, Stage.OTHER]


def test_clock_keeps_queue_and_compute_apart() -> None:
    """What engines report is added up by stage and never mixed with the wall time."""
    clock = StageClock()
    with clock.stage(Stage.EMBED):
        clock.charge(queue_ns=3, compute_ns=5)
        clock.charge(queue_ns=4)
    embed = clock.costs()[0][0]
    assert (embed.queue_ns, embed.compute_ns) == (7, 5)
    with pytest.raises(RuntimeError):
        clock.charge(queue_ns=1)


def test_ledger_wall_time_of_a_stage_that_was_not_entered_is_zero() -> None:
    """Asking for a stage that did not run is no error."""
    ledger = Ledger((StageCost(Stage.EMBED, 5, 0, 0),), 5)
    assert ledger.wall_ns(Stage.EMBED) == 5
    assert ledger.wall_ns(Stage.SEARCH) == 0
