"""What is planned for a Redis that goes away, and what is read off the calls."""

from __future__ import annotations

import pytest

from bench._common.faulty_load import Change, Phase, Sample, figures_of, plan_of

_S = 1_000_000_000
TITLES = [f"title {number}" for number in range(50)]


def test_plan_mixes_questions_that_come_again_with_new_ones() -> None:
    """The same for a seed; about the asked share was never asked before, and the first titles come most often."""
    plan = plan_of(200.0, 20.0, TITLES, 0.1, 3)
    assert plan == plan_of(200.0, 20.0, TITLES, 0.1, 3)
    assert len(plan.questions) == len(plan.arrivals_ns)
    new = [question for question in plan.questions if question.startswith("How does")]
    assert len(new) == len(set(new)) == pytest.approx(0.1 * len(plan.questions), rel=0.3)
    assert len(set(plan.questions) - set(new)) <= len(TITLES)


def test_figures_split_calls_by_what_redis_did() -> None:
    """Failures, flags and hits are those of each phase; the way back is counted from the end of the restart."""
    samples = [
        Sample(0, 90_000_000, "OK", False, False),  # while caches fill
        Sample(5 * _S, 2_000_000, "OK", False, True),
        Sample(11 * _S, 9_000_000, "OK", True, False),
        Sample(12 * _S, 1_000_000, "UNAVAILABLE", False, False),
        Sample(21 * _S, 3_000_000, "OK", True, False),  # the server is being started
        Sample(23 * _S, 3_000_000, "OK", True, False),
        Sample(24 * _S, 4_000_000, "OK", False, True),
    ]
    changes = [Change(Phase.DURING, 10 * _S, 10 * _S + 5), Change(Phase.AFTER, 20 * _S, 22 * _S)]
    found = figures_of(samples, changes)
    counts = [(one.phase, one.calls, one.failures, one.flagged, one.shared_hits) for one in found.phases]
    assert counts == [("before", 1, 0, 0, 1), ("away", 3, 1, 2, 0), ("back", 2, 0, 1, 1)]
    assert found.p99_added_ms == pytest.approx(9.0 - 2.0, abs=0.1)
    assert found.flagged_until_s == 1.0
    assert found.shared_hit_after_s == pytest.approx(2.004)


def test_figures_without_a_shared_hit_say_so() -> None:
    """Nothing came back: no time is made up."""
    changes = [Change(Phase.DURING, _S, _S), Change(Phase.AFTER, 2 * _S, 2 * _S)]
    assert figures_of([Sample(3 * _S, 1, "OK", False, False)], changes).shared_hit_after_s is None
