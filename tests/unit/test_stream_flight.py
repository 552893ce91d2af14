"""Identical concurrent streams run once; each follower reads all of it at its own pace."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest
import uvloop

from retrieval.caching.chain import Bounds
from retrieval.caching.keys import CacheKey, Purpose, hash_parts
from retrieval.caching.stream_flight import Stream, StreamFlight
from retrieval.clock import Stage
from retrieval.deadline import Deadline
from retrieval.errors import BackendCut, DeadlineExceeded, FlightCancelled, FollowerBehind, ShuttingDown

KEY = CacheKey(Purpose.ANSWER, "acme", "docs", hash_parts(Purpose.ANSWER, ("question",)))


class Token:
    """An item that can be watched."""

    def __init__(self, text: str) -> None:
        self.text = text


class Source:
    """A stream that sends what it is told to; None ends it, an exception is raised."""

    def __init__(self) -> None:
        self.orders: asyncio.Queue[str | BaseException | None] = asyncio.Queue()
        self.taken = 0
        self.started = 0
        self.closed = 0

    def send(self, *orders: str | BaseException | None) -> None:
        for order in orders:
            self.orders.put_nowait(order)

    async def __call__(self) -> AsyncGenerator[str, None]:
        self.started += 1
        try:
            while (order := await self.orders.get()) is not None:
                if isinstance(order, BaseException):
                    raise order
                self.taken += 1
                yield order
        finally:
            await asyncio.sleep(0)
            self.closed += 1


@pytest.fixture(autouse=True)
async def complaints() -> AsyncIterator[list[str]]:
    """Fails the test when a task's error was never looked at, or when a task is left."""
    loop, heard = asyncio.get_running_loop(), list[str]()
    loop.set_exception_handler(lambda _, context: heard.append(str(context["message"])))
    before = asyncio.all_tasks()
    yield heard
    await settle()
    gc.collect()
    assert heard == []
    assert asyncio.all_tasks() <= before | {task for task in (asyncio.current_task(),) if task}


async def settle() -> None:
    """Lets everything run that can run."""
    for _ in range(10):
        await asyncio.sleep(0)


def flights(max_items: int = 1000, max_bytes: int = 1_000_000) -> StreamFlight[str]:
    """Returns a flight of texts."""
    return StreamFlight(Bounds(max_items, max_bytes), len)


async def read(stream: Stream[str], texts: list[str] | None = None) -> list[str]:
    """Returns the rest of a stream; adds each item to `texts` as it comes."""
    texts = [] if texts is None else texts
    async with aclosing(stream):
        async for text in stream:
            texts.append(text)
    return texts


async def test_stream_flight_gives_late_joiners_the_prefix_then_live_items() -> None:
    """Who joins in the middle reads what was sent, and goes on with the others."""
    flight, source, early, late = flights(), Source(), list[str](), list[str]()
    leading = flight.follow(KEY, source)
    first = asyncio.create_task(read(leading, early))
    source.send("a", "b")
    await settle()
    assert early == ["a", "b"]
    joining = flight.follow(KEY, source)
    second = asyncio.create_task(read(joining, late))
    await settle()
    assert late == ["a", "b"]
    source.send("c")
    await settle()
    assert early == late == ["a", "b", "c"]
    source.send(None)
    assert await first == await second == ["a", "b", "c"]
    assert (leading.led, joining.led) == (True, False)
    assert (source.started, source.closed, len(flight)) == (1, 1, 0)


async def test_stream_flight_starts_anew_after_the_end() -> None:
    """A stream that has ended is not joined, although a follower still reads it."""
    flight, source, again = flights(), Source(), Source()
    slow = flight.follow(KEY, source)
    source.send("a", None)
    again.send("b", None)
    await settle()
    assert await read(flight.follow(KEY, again)) == ["b"]
    assert await read(slow) == ["a"]


async def test_stream_flight_serves_200_followers_although_the_first_is_cancelled() -> None:
    """One source, 199 whole streams: the source does not run in the first caller's task."""
    flight, source = flights(), Source()
    followers = [asyncio.create_task(read(flight.follow(KEY, source))) for _ in range(200)]
    source.send("a")
    await settle()
    followers[0].cancel()
    await settle()
    source.send("b", None)
    assert await asyncio.gather(*followers[1:]) == [["a", "b"]] * 199
    assert followers[0].cancelled()
    assert (source.started, source.closed, len(flight)) == (1, 1, 0)


async def test_stream_flight_closes_the_source_when_the_last_follower_leaves() -> None:
    """GEN-11: the source ends when nobody is left, by cancel or by close, and the key is free at once."""
    flight, source = flights(), Source()
    waiting = asyncio.create_task(read(flight.follow(KEY, source)))
    idle = flight.follow(KEY, source)
    source.send("a")
    await settle()
    waiting.cancel()
    await settle()
    assert source.closed == 0
    assert await anext(idle) == "a"
    await idle.aclose()
    assert len(flight) == 0
    await settle()
    assert source.closed == 1
    await idle.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(idle)


async def test_stream_flight_leaves_a_follower_that_is_cancelled_while_it_waits() -> None:
    """A cancelled wait is the follower's end, also for a caller that does not close it."""
    flight, source = flights(), Source()
    stream = flight.follow(KEY, source)
    waiting = asyncio.ensure_future(anext(stream))
    await settle()
    waiting.cancel()
    await settle()
    assert (source.closed, len(flight)) == (1, 0)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_stream_flight_frees_the_key_while_the_source_cleans_up() -> None:
    """A caller that comes while an abandoned source closes gets a new one."""
    flight, again, cleaned = flights(), Source(), asyncio.Event()

    async def lingering() -> AsyncGenerator[str, None]:
        try:
            yield "old"
            await asyncio.Event().wait()
        finally:
            await cleaned.wait()

    stream = flight.follow(KEY, lingering)
    assert await anext(stream) == "old"
    await stream.aclose()
    again.send("new", None)
    assert await read(flight.follow(KEY, again)) == ["new"]
    cleaned.set()


async def test_stream_flight_never_starts_a_source_that_nobody_waits_for() -> None:
    """A follower that leaves before the source has begun spares it."""
    flight, source = flights(), Source()
    await flight.follow(KEY, source).aclose()
    await settle()
    assert (source.started, len(flight)) == (0, 0)


async def test_stream_flight_stops_a_source_that_yields_while_it_is_cancelled() -> None:
    """GEN-12: a source that sends one more item instead of ending is closed all the same, and nothing is logged."""
    flight, closed = flights(), asyncio.Event()

    async def stubborn() -> AsyncGenerator[str, None]:
        try:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    yield "rest"
        finally:
            closed.set()

    stream = flight.follow(KEY, stubborn)
    await settle()
    await stream.aclose()
    await settle()
    assert closed.is_set()


async def test_stream_flight_gives_the_sources_error_after_its_items() -> None:
    """Slow and quick followers read all items, then get the error with its attributes."""
    flight, source, quick = flights(), Source(), list[str]()
    slow = flight.follow(KEY, source)
    follower = asyncio.create_task(read(flight.follow(KEY, source), quick))
    source.send("a", "b", BackendCut("llm", 2))
    with pytest.raises(BackendCut) as cut:
        await follower
    assert (quick, cut.value.received_chars, len(flight)) == (["a", "b"], 2, 0)
    assert [await anext(slow), await anext(slow)] == ["a", "b"]
    with pytest.raises(BackendCut):
        await anext(slow)
    with pytest.raises(StopAsyncIteration):
        await anext(slow)


async def test_stream_flight_gives_an_error_of_the_start_to_all() -> None:
    """A source that cannot even be made fails its followers, not the loop."""
    flight = flights()

    def broken() -> AsyncGenerator[str, None]:
        raise OSError

    followers = [asyncio.create_task(read(flight.follow(KEY, broken))) for _ in range(2)]
    answers = await asyncio.gather(*followers, return_exceptions=True)
    assert [type(answer) for answer in answers] == [OSError, OSError]


async def test_stream_flight_says_nothing_of_an_error_that_nobody_reads() -> None:
    """A source that fails while it is closed leaves no 'never retrieved' in the log."""
    flight = flights()

    async def failing() -> AsyncGenerator[str, None]:
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            raise OSError

    stream = flight.follow(KEY, failing)
    assert await anext(stream) == "a"
    await settle()
    await stream.aclose()


async def test_stream_flight_turns_a_cancel_from_within_into_an_error() -> None:
    """A source that cancels itself does not look like its followers' own cancel."""
    flight, source = flights(), Source()
    source.send("a", asyncio.CancelledError())
    stream = flight.follow(KEY, source)
    assert await anext(stream) == "a"
    with pytest.raises(FlightCancelled):
        await anext(stream)


async def test_stream_flight_lets_one_followers_deadline_end_that_follower_alone() -> None:
    """A deadline around the leader's reading leaves the others theirs."""
    flight, source = flights(), Source()

    async def hurried() -> None:
        async with aclosing(flight.follow(KEY, source)) as stream:
            with Deadline.after(0.01).iterating(Stage.GENERATE, stream) as timely:
                async for _ in timely:
                    pass

    first = asyncio.create_task(hurried())
    await settle()
    second = asyncio.create_task(read(flight.follow(KEY, source)))
    source.send("a")
    with pytest.raises(DeadlineExceeded):
        await first
    source.send("b", None)
    assert await second == ["a", "b"]


async def test_stream_flight_ends_a_wait_in_another_task_when_closed() -> None:
    """Closing a follower that is waiting elsewhere ends that wait as the stream's end does."""
    flight, source = flights(), Source()
    stream = flight.follow(KEY, source)
    waiting = asyncio.create_task(read(stream))
    await settle()
    await stream.aclose()
    assert await waiting == []


async def test_stream_flight_leaves_a_follower_that_was_never_closed() -> None:
    """A task that is cancelled before its first step closes nothing, and yet the source ends."""
    flight, source = flights(), Source()
    other = asyncio.create_task(read(flight.follow(KEY, source)))
    await settle()
    unborn = asyncio.create_task(read(flight.follow(KEY, source)))
    unborn.cancel()
    other.cancel()
    del unborn, other
    await settle()
    assert (source.closed, len(flight)) == (1, 0)


async def test_stream_flight_leaves_with_the_generator_that_wraps_it() -> None:
    """A caller's own generator that is closed between items takes the follower with it."""
    flight, source = flights(), Source()

    async def marked() -> AsyncGenerator[str, None]:
        async with aclosing(flight.follow(KEY, source)) as stream:
            async for text in stream:
                yield f"<{text}>"

    source.send("a")
    async with aclosing(marked()) as texts:
        assert await anext(texts) == "<a>"
    assert len(flight) == 0
    await settle()
    assert source.closed == 1


async def test_stream_flight_admits_nobody_past_its_bounds() -> None:
    """Past the items or bytes that are kept a newcomer leads its own stream; those present go on."""
    for bounds in ((2, 1000), (1000, 2)):
        flight, source, again = flights(*bounds), Source(), Source()
        present = asyncio.create_task(read(flight.follow(KEY, source)))
        source.send("a", "b")
        await settle()
        joiner = flight.follow(KEY, again)
        assert (joiner.led, len(flight)) == (False, 1)
        joined = asyncio.create_task(read(joiner))
        source.send("c")
        await settle()
        assert len(flight) == 0
        newcomer = flight.follow(KEY, again)
        assert newcomer.led
        source.send(None)
        again.send("d", None)
        assert await present == await joined == ["a", "b", "c"]
        assert await read(newcomer) == ["d"]


async def test_stream_flight_rests_while_all_followers_are_busy() -> None:
    """What nobody reads yet is not fetched past the bounds; a lone slow follower gets everything."""
    flight, source = flights(max_items=3), Source()
    stream = flight.follow(KEY, source)
    source.send(*"abcdefgh", None)
    await settle()
    assert source.taken == 4
    assert "".join(await read(stream)) == "abcdefgh"


async def test_stream_flight_drops_who_falls_behind_when_others_wait() -> None:
    """A slow follower never slows the others: past the bounds it falls out with an error."""
    flight, source, texts = flights(max_items=3), Source(), list[str]()
    slow, near = flight.follow(KEY, source), flight.follow(KEY, source)
    quick = asyncio.create_task(read(flight.follow(KEY, source), texts))
    source.send(*"abc")
    await settle()
    assert [await anext(near), await anext(slow)] == ["a", "a"]
    source.send(*"d")
    await settle()
    assert [await anext(near), await anext(slow)] == ["b", "b"]
    assert await anext(near) == "c"
    source.send(*"ef")
    await settle()
    assert await anext(near) == "d"
    await near.aclose()
    source.send("g", None)
    assert "".join(await quick) == "abcdefg"
    with pytest.raises(FollowerBehind) as behind:
        await anext(slow)
    assert (behind.value.max_items, behind.value.max_bytes) == (3, 1_000_000)
    with pytest.raises(StopAsyncIteration):
        await anext(slow)


async def test_stream_flight_goes_on_when_the_slowest_leaves() -> None:
    """A pump that rests because of one follower goes on for the others once it has left."""
    flight, source = flights(max_items=2), Source()
    slow, other = flight.follow(KEY, source), flight.follow(KEY, source)
    source.send(*"abcde")
    await settle()
    assert source.taken == 3
    assert [await anext(other), await anext(other)] == ["a", "b"]
    await slow.aclose()
    await settle()
    assert source.taken == 5
    await other.aclose()


async def test_stream_flight_frees_what_all_have_read() -> None:
    """Past the bounds only what somebody has still to read is kept, as one object for all."""
    flight, watched = StreamFlight[Token](Bounds(5, 1_000), lambda token: len(token.text)), list[weakref.ref[Token]]()

    async def tokens() -> AsyncGenerator[Token, None]:
        for number in range(100):
            token = Token(str(number))
            watched.append(weakref.ref(token))
            yield token

    first, second = flight.follow(KEY, tokens), flight.follow(KEY, tokens)
    for _ in range(50):
        assert await anext(first) is await anext(second)
    alive = sum(reference() is not None for reference in watched)
    assert alive <= 8
    await first.aclose()
    await second.aclose()


async def test_stream_flight_hands_out_items_of_a_source_that_never_waits() -> None:
    """An endless source that never suspends neither holds the loop nor its items."""
    flight = flights(max_items=10)

    async def endless() -> AsyncGenerator[str, None]:
        while True:
            yield "x"

    streams = [flight.follow(KEY, endless) for _ in range(2)]
    for stream in streams:
        assert [await anext(stream) for _ in range(5)] == ["x"] * 5
        await stream.aclose()


async def test_stream_flight_hands_out_an_item_before_it_fetches_the_next() -> None:
    """A follower that waits has the first item while a source that never suspends still has the others."""
    flight, fetched = flights(), list[int]()

    async def prompt() -> AsyncGenerator[str, None]:
        for number in range(5):
            fetched.append(number)
            yield str(number)

    async with aclosing(flight.follow(KEY, prompt)) as stream:
        assert [(text, len(fetched)) async for text in stream] == [(str(number), number + 1) for number in range(5)]


async def test_stream_flight_frees_a_long_chain() -> None:
    """A hundred thousand items that one follower never read are freed without deep recursion."""
    flight, count = flights(max_items=200_000), 100_000
    source = Source()
    source.send(*["x"] * count, None)
    stream = flight.follow(KEY, source)
    while source.closed == 0:
        await asyncio.sleep(0)
    assert await anext(stream) == "x"
    await stream.aclose()


async def test_stream_flight_close_ends_everything() -> None:
    """Closing waits until the sources have cleaned up; followers read what is there, then get an error."""
    flight, source = flights(), Source()
    stream = flight.follow(KEY, source)
    source.send("a")
    await settle()
    await flight.close()
    assert (source.closed, len(flight)) == (1, 0)
    assert await anext(stream) == "a"
    with pytest.raises(FlightCancelled):
        await anext(stream)
    with pytest.raises(ShuttingDown):
        flight.follow(KEY, source)


async def test_stream_flight_close_lets_an_abandoned_source_clean_up() -> None:
    """A source that is already being closed is waited for, not cancelled a second time."""
    flight, go, cleaned = flights(), asyncio.Event(), asyncio.Event()

    async def lingering() -> AsyncGenerator[str, None]:
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            await go.wait()
            cleaned.set()

    stream = flight.follow(KEY, lingering)
    assert await anext(stream) == "a"
    await stream.aclose()
    await settle()
    closing = asyncio.create_task(flight.close())
    await settle()
    assert not closing.done()
    go.set()
    await closing
    assert cleaned.is_set()


def test_stream_flight_runs_on_uvloop() -> None:
    """Joining late, leaving and ending are the same on the loop that serves."""

    async def main() -> None:
        flight, source = flights(), Source()
        leading = asyncio.create_task(read(flight.follow(KEY, source)))
        source.send("a")
        await settle()
        joined = asyncio.create_task(read(flight.follow(KEY, source)))
        await settle()
        leading.cancel()
        await settle()
        source.send("b", None)
        assert await joined == ["a", "b"]
        lonely = flight.follow(KEY, Source())
        await settle()
        await lonely.aclose()
        await settle()
        assert (len(flight), len(asyncio.all_tasks())) == (0, 1)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
