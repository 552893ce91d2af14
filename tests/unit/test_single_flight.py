"""Identical concurrent work runs once, and what befalls one caller befalls no other."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar

import pytest
import uvloop

from retrieval.caching.keys import CacheKey, Purpose, hash_parts
from retrieval.caching.single_flight import Joined, SingleFlight
from retrieval.clock import Stage
from retrieval.deadline import Deadline
from retrieval.errors import DeadlineExceeded, FlightCancelled, InvalidRequest, ShuttingDown

KEY = CacheKey(Purpose.EMBEDDING, "acme", "", hash_parts(Purpose.EMBEDDING, ("text",)))
OTHER = CacheKey(Purpose.EMBEDDING, "bolt", "", hash_parts(Purpose.EMBEDDING, ("text", "bolt")))


class Work:
    """Work that ends when it is told to, and counts its runs."""

    def __init__(self, value: str = "value") -> None:
        self.go = asyncio.Event()
        self.value = value
        self.error: BaseException | None = None
        self.started = 0
        self.cancelled = 0

    async def __call__(self) -> str:
        self.started += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return self.value


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


def call(
    flight: SingleFlight[str],
    work: Work,
    accept: Callable[[str], bool] | None = None,
    again: Callable[[BaseException], bool] | None = None,
) -> asyncio.Task[Joined[str]]:
    """Starts a caller in a task of its own."""
    return asyncio.create_task(flight.run(KEY, work, accept, again))


async def test_single_flight_runs_200_identical_calls_once_although_the_first_is_cancelled() -> None:
    """One run, 199 answers: the first caller's cancel is its own."""
    flight, work = SingleFlight[str](), Work()
    callers = [call(flight, work) for _ in range(200)]
    await settle()
    callers[0].cancel()
    await settle()
    assert (callers[0].cancelled(), len(flight), work.cancelled) == (True, 1, 0)
    work.go.set()
    assert await asyncio.gather(*callers[1:]) == [Joined("value", led=False)] * 199
    assert (work.started, len(flight)) == (1, 0)


async def test_single_flight_runs_once_when_the_first_and_the_fifth_of_ten_leave() -> None:
    """RED-09: eight answers from one run, nothing in flight afterwards; the next call runs anew."""
    flight, work = SingleFlight[str](), Work()
    callers = [call(flight, work) for _ in range(10)]
    await settle()
    callers[0].cancel()
    await settle()
    callers[4].cancel()
    await settle()
    work.go.set()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert [index for index, answer in enumerate(answers) if isinstance(answer, asyncio.CancelledError)] == [0, 4]
    assert answers.count(Joined("value", led=False)) == 8
    assert (work.started, len(flight)) == (1, 0)
    assert await flight.run(KEY, work) == Joined("value", led=True)
    assert work.started == 2


async def test_single_flight_answers_the_second_client_when_the_first_cancels() -> None:
    """GRP-01: no CancelledError from one client's cancel reaches the other."""
    flight, work = SingleFlight[str](), Work()
    first = call(flight, work)
    await settle()
    second = call(flight, work)
    await settle()
    first.cancel()
    await settle()
    work.go.set()
    assert await second == Joined("value", led=False)


async def test_single_flight_keeps_keys_apart() -> None:
    """Another tenant's key is another run."""
    flight, mine, theirs = SingleFlight[str](), Work("mine"), Work("theirs")
    mine.go.set()
    theirs.go.set()
    answers = await asyncio.gather(flight.run(KEY, mine), flight.run(OTHER, theirs))
    assert [answer.value for answer in answers] == ["mine", "theirs"]


async def test_single_flight_cancels_the_work_when_the_last_caller_leaves() -> None:
    """EMB-22: work that nobody waits for stops, and the key is free."""
    flight, work = SingleFlight[str](), Work()
    callers = [call(flight, work) for _ in range(3)]
    await settle()
    for caller in callers:
        assert work.cancelled == 0
        caller.cancel()
        await settle()
    assert (work.cancelled, len(flight)) == (1, 0)


async def test_single_flight_starts_anew_while_cancelled_work_unwinds() -> None:
    """A caller that comes while abandoned work cleans up neither waits for it nor gets its cancel."""
    flight, cleaned = SingleFlight[str](), asyncio.Event()

    async def lingering() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await cleaned.wait()
        return "never"

    first = asyncio.create_task(flight.run(KEY, lingering))
    await settle()
    first.cancel()
    await settle()
    assert first.cancelled()
    work = Work()
    work.go.set()
    assert await flight.run(KEY, work) == Joined("value", led=True)
    cleaned.set()


async def test_single_flight_stays_when_a_caller_joins_as_the_last_one_is_cancelled() -> None:
    """A caller that joins between the cancel and its arrival holds the run."""
    flight, work = SingleFlight[str](), Work()
    first = call(flight, work)
    await settle()
    second = call(flight, work)
    first.cancel()
    await settle()
    work.go.set()
    assert (await second).value == "value"
    assert work.cancelled == 0


async def test_single_flight_answers_the_others_when_one_is_cancelled_as_the_work_ends() -> None:
    """A cancel in the very turn of the loop in which the work has ended keeps nobody waiting."""
    for turns in range(4):
        flight, work = SingleFlight[str](), Work()
        callers = [call(flight, work) for _ in range(3)]
        await settle()
        work.go.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        callers[0].cancel()
        await asyncio.wait(callers)
        assert [(await caller).value for caller in callers[1:]] == ["value", "value"]


async def test_single_flight_gives_an_error_to_all_with_class_and_attributes() -> None:
    """Each caller gets the error that the work raised, each with a traceback that begins at the work alone."""
    flight, work = SingleFlight[str](), Work()
    work.error = InvalidRequest("query", "1..1000", "the query is empty; send one")
    depths = list[int]()

    async def caller() -> None:
        with pytest.raises(InvalidRequest) as invalid:
            await flight.run(KEY, work)
        frames = traceback.extract_tb(invalid.value.__traceback__)
        depths.append(len(frames))
        assert (invalid.value.field, frames[-1].name) == ("query", "__call__")

    callers = [asyncio.create_task(caller()) for _ in range(50)]
    await settle()
    work.go.set()
    await asyncio.gather(*callers)
    assert len(depths) == 50
    assert len(set(depths)) == 1
    assert len(flight) == 0


async def test_single_flight_says_nothing_of_an_error_that_nobody_waits_for() -> None:
    """Work that fails while it is being cancelled leaves no 'never retrieved' in the log."""
    flight = SingleFlight[str]()

    async def failing() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError from None
        return "never"

    caller = asyncio.create_task(flight.run(KEY, failing))
    await settle()
    caller.cancel()
    await settle()
    assert caller.cancelled()


async def test_single_flight_turns_a_cancel_from_within_into_an_error() -> None:
    """GRP-01: work that cancels itself does not look like the callers' own cancel."""
    flight, work = SingleFlight[str](), Work()
    work.error = asyncio.CancelledError()
    callers = [call(flight, work) for _ in range(3)]
    await settle()
    work.go.set()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert all(isinstance(answer, FlightCancelled) for answer in answers)


async def test_single_flight_lets_one_callers_deadline_end_that_caller_alone() -> None:
    """A short deadline around the wait of the leader leaves the others waiting."""
    flight, work = SingleFlight[str](), Work()

    async def hurried() -> None:
        async with Deadline.after(0.01).bound(Stage.EMBED):
            await flight.run(KEY, work)

    first = asyncio.create_task(hurried())
    await settle()
    second = call(flight, work)
    with pytest.raises(DeadlineExceeded):
        await first
    work.go.set()
    assert (await second).value == "value"
    assert (work.started, work.cancelled) == (1, 0)


async def test_single_flight_goes_again_for_those_whom_the_value_does_not_suit() -> None:
    """One of those that refuse leads the next round; the leader takes its own, whatever it thinks of it."""
    flight = SingleFlight[str]()
    poor, good = Work("poor"), Work("good")

    def wants_good(value: str) -> bool:
        return value == "good"

    first = call(flight, poor, wants_good)
    await settle()
    easy, picky = call(flight, good), [call(flight, good, wants_good) for _ in range(5)]
    await settle()
    poor.go.set()
    assert await first == Joined("poor", led=True)
    assert await easy == Joined("poor", led=False)
    await settle()
    good.go.set()
    answers = await asyncio.gather(*picky)
    assert answers == [Joined("good", led=True)] + [Joined("good", led=False)] * 4
    assert (good.started, len(flight)) == (1, 0)


async def test_single_flight_ends_when_no_value_suits() -> None:
    """Callers that refuse everything each lead once."""
    flight, work = SingleFlight[str](), Work()
    work.go.set()
    answers = await asyncio.gather(*(call(flight, work, lambda _: False) for _ in range(6)))
    assert answers == [Joined("value", led=True)] * 6
    assert work.started == 6


async def test_single_flight_goes_again_after_an_error_of_the_leaders_own() -> None:
    """A deadline inside the leader's work ends the leader; who joined and says so goes again."""
    flight, hurried, work = SingleFlight[str](), Work(), Work()
    hurried.error = DeadlineExceeded("embed", 5.0)
    work.go.set()
    first = call(flight, hurried)
    await settle()
    patient = call(flight, work, None, lambda error: isinstance(error, DeadlineExceeded))
    plain = call(flight, work)
    await settle()
    hurried.go.set()
    answers = await asyncio.gather(first, patient, plain, return_exceptions=True)
    assert [type(answers[0]), type(answers[2])] == [DeadlineExceeded] * 2
    assert answers[1] == Joined("value", led=True)


async def test_single_flight_runs_the_work_in_the_leaders_context() -> None:
    """The work sees the context variables of the caller that started it."""
    variable = ContextVar("variable", default="unset")
    flight = SingleFlight[str]()

    async def work() -> str:
        return variable.get()

    variable.set("set")
    assert (await flight.run(KEY, work)).value == "set"


async def test_single_flight_close_ends_everything() -> None:
    """Closing cancels the work, tells the callers by an error, waits for the cleaning up and takes nothing new."""
    flight, cleaned = SingleFlight[str](), list[str]()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await settle()
            cleaned.append("cleaned")
        return "never"

    caller = asyncio.create_task(flight.run(KEY, work))
    await settle()
    await asyncio.gather(flight.close(), flight.close())
    assert (cleaned, len(flight)) == (["cleaned"], 0)
    with pytest.raises(FlightCancelled):
        await caller
    with pytest.raises(ShuttingDown):
        await flight.run(KEY, work)
    await flight.close()


def test_single_flight_runs_on_uvloop() -> None:
    """Joining, leaving and failing are the same on the loop that serves."""

    async def main() -> None:
        flight, work = SingleFlight[str](), Work()
        callers = [call(flight, work) for _ in range(5)]
        await settle()
        callers[0].cancel()
        await settle()
        work.go.set()
        assert [(await caller).value for caller in callers[1:]] == ["value"] * 4
        lonely = call(flight, Work())
        await settle()
        lonely.cancel()
        await settle()
        assert (lonely.cancelled(), len(flight), len(asyncio.all_tasks())) == (True, 0, 1)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
