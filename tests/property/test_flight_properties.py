"""Shared work under any interleaving of joining, leaving, items, errors and the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from retrieval.caching.chain import Bounds
from retrieval.caching.keys import CacheKey, Purpose, hash_parts
from retrieval.caching.single_flight import Joined, SingleFlight
from retrieval.caching.stream_flight import Stream, StreamFlight
from retrieval.errors import FlightCancelled, FollowerBehind

KEYS = [CacheKey(Purpose.RESULT, "acme", "docs", hash_parts(Purpose.RESULT, (name,))) for name in "ab"]
_WHO = st.integers(0, 30)
_CALL_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.integers(0, 1)),
        st.tuples(st.just("join picky"), st.integers(0, 1)),
        st.tuples(st.sampled_from(["cancel", "finish", "fail", "cancel within"]), _WHO),
        st.tuples(st.just("tick"), st.integers(1, 4)),
    ),
    max_size=60,
)
_STREAM_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.integers(0, 1)),
        st.tuples(st.just("hold"), st.integers(0, 1)),
        st.tuples(st.sampled_from(["cancel", "read", "close", "item", "item", "item", "error", "end"]), _WHO),
        st.tuples(st.just("tick"), st.integers(1, 4)),
    ),
    max_size=80,
)


class WorkFailed(Exception):
    """What the work raises; names the run."""

    def __init__(self, run: int) -> None:
        super().__init__(run)
        self.run = run


def loop_run(main: Coroutine[Any, Any, None]) -> None:
    """Runs an example to its end; nothing may be left in the loop, nothing be said to its error handler."""
    heard = list[str]()

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(str(context["message"])))
        await main
        await tick(8)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(watched())
    assert heard == []


async def tick(count: int) -> None:
    """Lets the loop turn."""
    for _ in range(count):
        await asyncio.sleep(0)


class Calls:
    """Callers of a single flight and the runs of their work, which end when a step says so."""

    def __init__(self) -> None:
        self.flight = SingleFlight[int]()
        self.runs: list[tuple[int, asyncio.Future[int]]] = []  # key, end
        self.running: list[int] = []  # keys of the runs that nobody has cancelled
        self.callers: list[tuple[int, int, asyncio.Task[Joined[int]]]] = []  # key, first run it may get, task
        self.left: set[int] = set()
        self.over: set[int] = set()  # runs that have ended
        self.settled: set[int] = set()  # runs that had ended when the loop last came to rest

    def join(self, key: int, picky: bool) -> None:
        async def work() -> int:
            number = len(self.runs)
            end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self.runs.append((key, end))
            assert key not in self.running
            self.running.append(key)
            try:
                return await end
            finally:
                self.running.remove(key)
                self.over.add(number)

        def accept(value: int) -> bool:
            return not picky or value % 2 == 1

        def again(_: BaseException) -> bool:
            return picky

        task = asyncio.create_task(self.flight.run(KEYS[key], work, accept, again))
        under_way = [number for number, (name, _) in enumerate(self.runs) if name == key and number not in self.settled]
        self.callers.append((key, min(under_way, default=len(self.runs)), task))

    def step(self, step: str, number: int) -> None:
        if step.startswith("join"):
            self.join(number, picky=step == "join picky")
        elif step == "cancel" and self.callers:
            index = number % len(self.callers)
            if self.callers[index][2].cancel():
                self.left.add(index)
        elif self.runs and not (end := self.runs[number % len(self.runs)][1]).done():
            if step == "finish":
                end.set_result(number % len(self.runs))
            elif step == "fail":
                end.set_exception(WorkFailed(number % len(self.runs)))
            elif step == "cancel within":
                end.cancel()

    async def tick(self, count: int) -> None:
        await tick(count)
        if count == 4:
            self.settled = set(self.over)

    async def finish(self) -> None:
        """Ends all runs, and those that begin because of it."""
        while any(not task.done() for _, _, task in self.callers):
            for number, (_, end) in enumerate(self.runs):
                if not end.done():
                    end.set_result(number)
            await tick(1)

    def check(self) -> None:
        """Each caller that stayed got what a run of its key gave that was under way while it waited."""
        leaders = list[int]()
        for index, (key, first, task) in enumerate(self.callers):
            if task.cancelled():
                assert index in self.left
                continue
            error = task.exception()
            if error is None:
                joined = task.result()
                assert self.runs[joined.value][0] == key
                assert joined.value >= first
                leaders.extend([joined.value] * joined.led)
            elif isinstance(error, WorkFailed):
                assert self.runs[error.run][0] == key
                assert error.run >= first
            else:
                assert isinstance(error, FlightCancelled)
                assert any(name == key and end.cancelled() for name, end in self.runs)
        assert len(leaders) == len(set(leaders))
        assert (len(self.flight), self.running) == (0, [])


@given(_CALL_STEPS)
def test_single_flight_serves_each_caller_that_stays(steps: list[tuple[str, int]]) -> None:
    """Whatever others do, who stays gets a fitting run's end, at most one run a key goes on, and nothing is left."""

    async def main() -> None:
        calls = Calls()
        for step, number in steps:
            if step == "tick":
                await calls.tick(number)
            else:
                calls.step(step, number)
        await calls.finish()
        await tick(4)
        calls.check()
        await calls.flight.close()

    loop_run(main())


class Follower:
    """One that reads a stream, at once or only when a step says so."""

    def __init__(self, follow: Callable[[], Stream[int]]) -> None:
        self.follow = follow
        self.stream: Stream[int] | None = None
        self.texts: list[int] = []
        self.ended: str | None = None
        self.task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self.stream is not None:
            await self.stream.aclose()

    async def read(self) -> None:
        self.stream = self.stream or self.follow()
        async with aclosing(self.stream):
            try:
                async for item in self.stream:
                    self.texts.append(item)
                self.ended = "end"
            except WorkFailed:
                self.ended = "error"
            except FollowerBehind:
                self.ended = "behind"


class Streams:
    """Followers of a stream flight and its sources, which send what a step says."""

    def __init__(self, bounds: Bounds) -> None:
        self.flight = StreamFlight[int](bounds, lambda _: 1)
        self.orders: list[asyncio.Queue[str]] = []
        self.sent: list[list[int]] = []  # by source
        self.ends: list[str] = []
        self.open = 0
        self.followers: list[Follower] = []
        self.gone: set[Follower] = set()

    def join(self, key: int, hold: bool) -> None:
        async def source() -> AsyncGenerator[int, None]:
            number, orders = len(self.orders), asyncio.Queue[str]()
            self.orders.append(orders)
            self.sent.append([])
            self.ends.append("open")
            self.open += 1
            try:
                while (order := await orders.get()) == "item":
                    # The source's number is in its items: a follower can only have those of one source.
                    self.sent[number].append(1000 * number + len(self.sent[number]))
                    yield self.sent[number][-1]
                self.ends[number] = order
                if order == "error":
                    raise WorkFailed(number)
            finally:
                self.open -= 1

        follower = Follower(partial(self.flight.follow, KEYS[key], source))
        self.followers.append(follower)
        if hold:
            follower.stream = follower.follow()
        else:
            follower.task = asyncio.create_task(follower.read())

    async def step(self, step: str, number: int) -> None:
        if step in {"join", "hold"}:
            self.join(number, hold=step == "hold")
        elif step in {"item", "error", "end"} and self.orders:
            self.orders[number % len(self.orders)].put_nowait(step)
        elif step in {"cancel", "read", "close"} and self.followers:
            follower = self.followers[number % len(self.followers)]
            if step == "close":
                self.gone.add(follower)
                await follower.close()
            elif step == "read" and follower.task is None:
                follower.task = asyncio.create_task(follower.read())
            elif step == "cancel" and follower.task is not None and follower.task.cancel():
                self.gone.add(follower)

    async def finish(self) -> None:
        """Lets all read, and ends all sources, also those that begin late."""
        for follower in self.gone:
            # A task that is cancelled before it begins closes nothing.
            await follower.close()
        for follower in self.followers:
            follower.task = follower.task or asyncio.create_task(follower.read())
        while any(follower.task is not None and not follower.task.done() for follower in self.followers):
            for orders in self.orders:
                orders.put_nowait("end")
            await tick(1)

    def check(self) -> None:
        """Who stayed read one source whole and in order, then its end; who left, a part from the start."""
        for follower in self.followers:
            number = follower.texts[0] // 1000 if follower.texts else None
            sent = [] if number is None else self.sent[number]
            assert follower.texts == sent[: len(follower.texts)]
            if follower not in self.gone and follower.ended != "behind":
                assert follower.ended in {"end", "error"}
                assert follower.texts == sent
                assert number is None or self.ends[number] == follower.ended
        assert len(self.orders) <= sum(
            follower.stream.led for follower in self.followers if follower.stream is not None
        )
        assert (len(self.flight), self.open) == (0, 0)


def _play(steps: list[tuple[str, int]], bounds: Bounds) -> Streams:
    streams = Streams(bounds)

    async def main() -> None:
        for step, number in steps:
            if step == "tick":
                await tick(number)
            else:
                await streams.step(step, number)
        await streams.finish()
        await tick(4)
        streams.check()
        await streams.flight.close()

    loop_run(main())
    return streams


@given(_STREAM_STEPS)
def test_stream_flight_gives_each_follower_that_stays_the_whole_stream(steps: list[tuple[str, int]]) -> None:
    """Within the bounds nobody falls out, sources run once a flight, and nothing is left."""
    streams = _play(steps, Bounds(1000, 1000))
    assert all(follower.ended != "behind" for follower in streams.followers)


@given(_STREAM_STEPS, st.integers(1, 4))
def test_stream_flight_past_its_bounds_gives_a_whole_stream_or_an_error(
    steps: list[tuple[str, int]], max_items: int
) -> None:
    """With hardly any room followers read slowly, alone, or fall out with an error; never a stream with a gap."""
    _play(steps, Bounds(max_items, 1000))
