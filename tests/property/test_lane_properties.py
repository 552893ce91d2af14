"""What holds for every mix of requests, tenants, priorities, cancellations and failures."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.dispatch.fair_waiting import FairWaiting, Waiter
from retrieval.dispatch.lane import Lane, LaneBounds
from retrieval.dispatch.types import Ticket
from retrieval.errors import Overloaded
from retrieval.route import Priority
from retrieval.settings.generation import QueueSettings
from tests.fakes.lane_load import make_lane, ticket
from tests.fakes.virtual_time import now_ns, run_virtual

_TENTHS = st.integers(0, 40)
_REQUEST = st.tuples(
    _TENTHS,  # when it comes
    st.sampled_from("abc"),
    st.sampled_from(list(Priority)),
    st.integers(1, 60),  # deadline, from then
    st.integers(0, 20),  # how long the server takes
    st.none() | st.integers(0, 30),  # when its caller leaves, from then
    st.booleans(),  # whether the server refuses it
)
_BOUNDS = st.builds(LaneBounds, st.integers(1, 4), st.integers(0, 6), st.integers(1, 6))


class _Run:
    """One run of a list of requests against a lane."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.ends: Counter[str] = Counter()

    async def request(self, number: int, shape: tuple[int, str, Priority, int, int, int | None, bool]) -> None:
        at, tenant, priority, deadline, held, leaves, refused = shape
        await asyncio.sleep(at / 10 + number * 1e-6)
        task = asyncio.create_task(self._ask(ticket(tenant, deadline / 10, priority), held / 10, refused))
        if leaves is not None:
            asyncio.get_running_loop().call_later(leaves / 10, task.cancel)
        await asyncio.wait({task})
        assert task.cancelled() or task.exception() is None
        self.ends["left" if task.cancelled() else task.result()] += 1

    async def _ask(self, asked: Ticket, held_s: float, refused: bool) -> str:
        lane, began_ns = self.lane, now_ns()
        patience_ns = lane._patience_ns(asked, began_ns)
        try:
            place = await lane.acquire(asked)
        except Overloaded:
            assert now_ns() - began_ns <= max(0, patience_ns) + 1000
            return "refused"
        assert place.waited_ns == now_ns() - began_ns
        assert lane.running <= 4
        try:
            place.first_token(int(held_s * 1e8))
            await asyncio.sleep(held_s)
        finally:
            place.release(overloaded=refused)
        return "served"


@settings(max_examples=150, deadline=None)
@given(_BOUNDS, st.lists(_REQUEST, max_size=30))
def test_every_request_ends_and_every_place_comes_back(
    bounds: LaneBounds, shapes: list[tuple[int, str, Priority, int, int, int | None, bool]]
) -> None:
    """No more run than the maximum, none waits beyond its time, and nothing is left when all have ended."""

    async def scenario() -> None:
        run = _Run(make_lane(bounds, QueueSettings(max_wait_ms=1500)))
        async with asyncio.TaskGroup() as group:
            for number, shape in enumerate(shapes):
                group.create_task(run.request(number, shape))
        assert sum(run.ends.values()) == len(shapes)
        assert (run.lane.running, run.lane.waiting) == (0, 0)
        assert 1 <= run.lane.limit <= bounds.max_concurrent

    run_virtual(scenario())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_TENTHS, st.integers(1, 20), st.integers(1, 60)), max_size=25), st.integers(1, 3))
def test_refusal_at_once_means_that_the_wait_would_be_too_long(shapes: list[tuple[int, int, int]], places: int) -> None:
    """With room in the queue, only a predicted wait beyond the deadline or the longest wait is refused at once."""

    async def scenario() -> None:
        lane = make_lane(LaneBounds(places, 1000, places), QueueSettings(max_wait_ms=2000))

        async def ask(number: int, at: int, held: int, deadline: int) -> None:
            await asyncio.sleep(at / 10 + number * 1e-6)
            asked, began_ns = ticket(seconds=deadline / 10), now_ns()
            predicted_ns, useful_ns = lane.wait_ns(asked), lane._patience_ns(asked, began_ns)
            try:
                place = await lane.acquire(asked)
            except Overloaded:
                at_once = now_ns() == began_ns
                assert at_once == (predicted_ns > useful_ns or useful_ns <= 0)
                return
            await asyncio.sleep(held / 10)
            place.release()

        async with asyncio.TaskGroup() as group:
            for number, shape in enumerate(shapes):
                group.create_task(ask(number, *shape))

    run_virtual(scenario())


@given(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0, 7.5]), min_size=2, max_size=5), st.integers(50, 200))
def test_tenants_share_by_weight_while_all_wait(weights: list[float], turns: int) -> None:
    """No tenant's share is off by more than a request of its own and one of each other (Goyal et al., 1996)."""
    by_name = dict(zip("abcde", weights, strict=False))
    queue: FairWaiting[int] = FairWaiting(lambda tenant: by_name[tenant])
    for name in by_name:
        for number in range(turns):
            queue.put(Waiter(name, Priority.BATCH, number))
    served = Counter(waiter.tenant for _ in range(turns) if (waiter := queue.take()))
    for (one, its), (other, weight) in itertools.combinations(by_name.items(), 2):
        assert abs(served[one] / its - served[other] / weight) <= 1 / its + 1 / weight + 1e-9


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(list(Priority))), max_size=40), st.integers(0, 10))
def test_position_is_what_is_served_before(arrivals: list[tuple[str, Priority]], taken: int) -> None:
    """Within one class, as many are served before a new request as were said to be ahead of it."""
    queue: FairWaiting[int] = FairWaiting(lambda tenant: {"a": 2.0}.get(tenant, 1.0))
    for number, (tenant, _) in enumerate(arrivals):
        queue.put(Waiter(tenant, Priority.INTERACTIVE, number))
    for _ in range(taken):
        queue.take()
    ahead = queue.ahead_of("b", Priority.INTERACTIVE)
    queue.put(Waiter("b", Priority.INTERACTIVE, -1))
    before = 0
    while (waiter := queue.take()) and waiter.turn != -1:
        before += 1
    assert abs(before - ahead) <= 2  # ties between tenants go either way


@given(st.lists(st.sampled_from(list(Priority)), min_size=1, max_size=300))
def test_no_class_is_passed_over_for_long(arrivals: list[Priority]) -> None:
    """Whoever waits at the head of a class is served within nine turns."""
    queue: FairWaiting[int] = FairWaiting(lambda tenant: 1.0)
    left = Counter(arrivals)
    for number, priority in enumerate(arrivals):
        queue.put(Waiter("a", priority, number))
    since = dict.fromkeys(Priority, 0)
    while waiter := queue.take():
        left[waiter.priority] -= 1
        for priority in Priority:
            since[priority] = 0 if priority is waiter.priority or not left[priority] else since[priority] + 1
        assert max(since.values()) <= 8
