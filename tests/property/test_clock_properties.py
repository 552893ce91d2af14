"""The clock charges every nanosecond once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retrieval.clock import Stage, StageClock

REAL_STAGES = [stage for stage in Stage if stage is not Stage.OTHER]


class Ticks:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now_ns = 1_000

    def __call__(self) -> int:
        return self.now_ns


@given(
    st.lists(
        st.tuples(st.sampled_from(REAL_STAGES), st.integers(0, 10**9), st.integers(0, 10**9)), unique_by=lambda s: s[0]
    ),
    st.integers(0, 10**9),
    st.booleans(),
)
def test_clock_parts_sum_to_the_whole(spans: list[tuple[Stage, int, int]], tail_ns: int, leave_open: bool) -> None:
    """Whatever the stages and the gaps between them, the parts sum to the whole and each part is its own time."""
    ticks = Ticks()
    clock = StageClock(ticks)
    for stage, gap_ns, inside_ns in spans:
        ticks.now_ns += gap_ns
        with clock.stage(stage):
            ticks.now_ns += inside_ns
    ticks.now_ns += tail_ns
    costs, total_ns = clock.costs()
    assert sum(cost.wall_ns for cost in costs) == total_ns
    walls = {cost.stage: cost.wall_ns for cost in costs}
    assert all(walls[stage] == inside_ns for stage, _, inside_ns in spans)
    assert walls[Stage.OTHER] == sum(gap_ns for _, gap_ns, _ in spans) + tail_ns
    if leave_open and len(spans) < len(REAL_STAGES):
        free = next(stage for stage in REAL_STAGES if stage not in walls)
        with clock.stage(free):
            ticks.now_ns += 77
            costs, total_ns = clock.costs()
            assert {cost.stage: cost.wall_ns for cost in costs}[free] == 77
            assert sum(cost.wall_ns for cost in costs) == total_ns
