"""How calls share the worker threads, end early, fail apart, and are refused."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from encoders.errors import EncodingFailed, NonFiniteOutput, SchedulerFull, SchedulerStopped, WorkExpired
from encoders.pieces import PiecePolicy
from encoders.scheduler import TokenScheduler
from encoders.types import Outcome, TokenizedText, WorkClass
from tests.fakes.engines import WAIT_S, EchoEngine, EngineDied, GatedEngine, items

ONLINE, BULK = WorkClass.ONLINE, WorkClass.BULK


@pytest.fixture
def scheduler() -> Iterator[TokenScheduler]:
    """Opens a scheduler with one worker and room for 50 items."""
    opened = TokenScheduler(workers=1, capacity_items=50)
    yield opened
    opened.stop(timeout_s=5.0)


async def _begun(engine: GatedEngine) -> None:
    await asyncio.to_thread(engine.wait_begun)


async def test_scheduler_returns_outcomes_in_order(scheduler: TokenScheduler) -> None:
    """Outcome i belongs to item i, and says what it cost."""
    outcomes = await scheduler.submit(EchoEngine(), items(5, 3, 9, tokens=7), ONLINE, None)
    assert [outcome.value for outcome in outcomes] == [5, 3, 9]
    assert all(outcome.error is None and outcome.token_count == 7 for outcome in outcomes)
    assert all(outcome.queue_ns >= 0 and outcome.compute_ns > 0 for outcome in outcomes)


async def test_scheduler_gives_an_empty_call_nothing(scheduler: TokenScheduler) -> None:
    """No items, no outcomes, no work."""
    assert await scheduler.submit(EchoEngine(), [], ONLINE, None) == []


@pytest.mark.parametrize(("fault", "error"), [(ValueError, EncodingFailed), (NonFiniteOutput, NonFiniteOutput)])
async def test_scheduler_isolates_a_failing_item(
    scheduler: TokenScheduler, fault: type[Exception], error: type[Exception]
) -> None:
    """EMB-06: one item fails by itself, its neighbours have their values."""
    engine = EchoEngine(faults={3: fault})
    outcomes = await scheduler.submit(engine, items(*range(8)), ONLINE, None)
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, None, 4, 5, 6, 7]
    assert isinstance(outcomes[3].error, error)
    assert all(outcome.error is None for outcome in outcomes if outcome.value is not None)


async def test_scheduler_chains_the_cause_of_a_failure(scheduler: TokenScheduler) -> None:
    """A foreign exception travels as the cause of ours."""
    (outcome,) = await scheduler.submit(EchoEngine(faults={1: KeyError}), items(1), ONLINE, None)
    assert outcome.error is not None
    assert isinstance(outcome.error.__cause__, KeyError)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_scheduler_replaces_a_dead_worker(scheduler: TokenScheduler) -> None:
    """The caller of the item that ended a worker gets an error, and the next call is served."""
    engine = EchoEngine(faults={1: EngineDied})
    (outcome,) = await scheduler.submit(engine, items(1), ONLINE, None)
    assert isinstance(outcome.error, EncodingFailed)
    (outcome,) = await scheduler.submit(EchoEngine(), items(2), ONLINE, None)
    assert outcome.value == 2
    await asyncio.to_thread(engine.threads[0].join)
    assert scheduler.workers.healthy


async def test_scheduler_refuses_a_call_that_does_not_fit_whole(scheduler: TokenScheduler) -> None:
    """A full queue accepts nothing of a call and says when to come again; what it holds is still served."""
    engine = GatedEngine()
    first = asyncio.create_task(scheduler.submit(engine, items(*range(50)), ONLINE, None))
    await _begun(engine)
    with pytest.raises(SchedulerFull) as refused:
        await scheduler.submit(engine, items(100, 101), ONLINE, None)
    assert (refused.value.queued_items, refused.value.capacity_items) == (49, 50)
    assert refused.value.retry_after_ms >= 1.0
    last = asyncio.create_task(scheduler.submit(engine, items(100), ONLINE, None))
    await asyncio.sleep(0)
    engine.gate.set()
    assert len(await first) == 50
    assert [outcome.value for outcome in await last] == [100]


async def test_scheduler_keeps_room_for_online_when_bulk_is_full(scheduler: TokenScheduler) -> None:
    """The bound holds for each work class by itself."""
    engine = GatedEngine()
    bulk = asyncio.create_task(scheduler.submit(engine, items(*range(50)), BULK, None))
    await _begun(engine)
    (outcome,) = await scheduler.submit(EchoEngine(), items(7), ONLINE, None)
    assert outcome.value == 7
    engine.gate.set()
    assert len(await bulk) == 50


async def test_online_item_does_not_wait_for_a_bulk_item_in_progress(scheduler: TokenScheduler) -> None:
    """Bulk work that holds all its threads never holds up an online call."""
    engine = GatedEngine()
    bulk = asyncio.create_task(scheduler.submit(engine, items(1), BULK, None))
    await _begun(engine)
    assert (await scheduler.submit(EchoEngine(), items(2), ONLINE, None))[0].value == 2
    assert not bulk.done()
    engine.gate.set()
    assert (await bulk)[0].value == 1


async def test_bulk_is_served_while_online_calls_keep_coming(scheduler: TokenScheduler) -> None:
    """Bulk never starves: it has threads of its own."""
    held = GatedEngine()
    online = asyncio.create_task(scheduler.submit(held, items(1), ONLINE, None))
    await _begun(held)
    assert (await scheduler.submit(EchoEngine(), items(2), BULK, None))[0].value == 2
    held.gate.set()
    await online


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux only")
async def test_bulk_threads_give_way_to_online_threads(scheduler: TokenScheduler) -> None:
    """Bulk runs at a lower priority than everything else in the process."""
    online, bulk = EchoEngine(), EchoEngine()
    await scheduler.submit(online, items(1), ONLINE, None)
    await scheduler.submit(bulk, items(1), BULK, None)
    assert min(bulk.niceness) > max(online.niceness)


async def test_long_call_does_not_delay_a_short_one(scheduler: TokenScheduler) -> None:
    """A call with one item waits for about one item of a call with many, not for all of them."""
    gated, echo = GatedEngine(), EchoEngine()
    blocker = asyncio.create_task(scheduler.submit(gated, items(0), ONLINE, None))
    await _begun(gated)
    long = asyncio.create_task(scheduler.submit(echo, items(*range(1, 41)), ONLINE, None))
    await asyncio.sleep(0)
    short = asyncio.create_task(scheduler.submit(echo, items(99), ONLINE, None))
    await asyncio.sleep(0)
    gated.gate.set()
    await asyncio.gather(blocker, long, short)
    assert echo.seen.index(99) <= 1


async def test_scheduler_ends_a_call_at_its_deadline(scheduler: TokenScheduler) -> None:
    """EMB-22: work whose caller has left costs no more than the item in progress."""
    engine = GatedEngine()
    deadline = time.monotonic_ns() + 100_000_000
    late = [asyncio.create_task(scheduler.submit(engine, items(number), ONLINE, deadline)) for number in range(20)]
    for outcomes in await asyncio.gather(*late):
        assert isinstance(outcomes[0].error, WorkExpired)
    assert time.monotonic_ns() >= deadline
    last = asyncio.create_task(scheduler.submit(engine, items(77), ONLINE, None))
    await asyncio.sleep(0)
    engine.gate.set()
    assert (await last)[0].value == 77
    assert len(engine.seen) == 2


async def test_scheduler_keeps_what_was_done_before_the_deadline(scheduler: TokenScheduler) -> None:
    """An expired call has values for the items that were in time."""
    engine = GatedEngine(held={2})
    outcomes = await scheduler.submit(engine, items(1, 2, 3), ONLINE, time.monotonic_ns() + 50_000_000)
    engine.gate.set()
    assert outcomes[0].value == 1
    assert [type(outcome.error) for outcome in outcomes[1:]] == [WorkExpired, WorkExpired]


async def test_scheduler_drops_the_rest_of_a_cancelled_call(scheduler: TokenScheduler) -> None:
    """Cancelling frees the queue at once and leaves only the item in progress to be computed."""
    engine = GatedEngine()
    call = asyncio.create_task(scheduler.submit(engine, items(*range(40)), ONLINE, None))
    await _begun(engine)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert scheduler.stats().queued_online_items == 0
    engine.gate.set()
    assert (await scheduler.submit(EchoEngine(), items(1), ONLINE, None))[0].value == 1
    assert engine.seen == [0]


async def test_scheduler_does_not_begin_work_that_is_already_late(scheduler: TokenScheduler) -> None:
    """An item whose deadline has passed is dropped when it is taken."""
    engine = EchoEngine()
    (outcome,) = await scheduler.submit(engine, items(1), ONLINE, time.monotonic_ns() - 1)
    assert isinstance(outcome.error, WorkExpired)
    assert engine.seen == []


async def test_stop_finishes_what_was_accepted_and_refuses_the_rest() -> None:
    """A stopping scheduler drains; afterwards it takes nothing."""
    scheduler = TokenScheduler(workers=2, capacity_items=50)
    engine = GatedEngine()
    call = asyncio.create_task(scheduler.submit(engine, items(*range(20)), BULK, None))
    await _begun(engine)
    stopping = asyncio.create_task(asyncio.to_thread(scheduler.stop, 10.0))
    engine.gate.set()
    await stopping
    assert [outcome.value for outcome in await call] == list(range(20))
    assert scheduler.stats().alive_threads == 0
    with pytest.raises(SchedulerStopped):
        await scheduler.submit(EchoEngine(), items(1), ONLINE, None)


async def test_stop_fails_what_does_not_finish_in_time() -> None:
    """No caller waits for a scheduler that is gone."""
    scheduler = TokenScheduler(workers=1, capacity_items=50)
    engine = GatedEngine()
    call = asyncio.create_task(scheduler.submit(engine, items(1, 2), ONLINE, None))
    await _begun(engine)
    await asyncio.to_thread(scheduler.stop, 0.0)
    assert all(isinstance(outcome.error, SchedulerStopped) for outcome in await call)
    engine.gate.set()


def test_scheduler_serves_several_event_loops() -> None:
    """Each call wakes the loop that it came from."""
    scheduler = TokenScheduler(workers=2, capacity_items=500)
    results: dict[int, list[object]] = {}

    async def calls(number: int) -> None:
        for round_number in range(20):
            outcomes = await scheduler.submit(EchoEngine(), items(number, round_number), ONLINE, None)
            results.setdefault(number, []).extend(outcome.value for outcome in outcomes)

    threads = [threading.Thread(target=asyncio.run, args=(calls(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    scheduler.stop()
    for number in range(4):
        assert results[number] == [value for round_number in range(20) for value in (number, round_number)]


async def test_stats_tell_queue_threads_and_cost(scheduler: TokenScheduler) -> None:
    """Counts are exact at rest, and a model has a cost once it has run."""
    assert scheduler.stats().ns_per_token == {}
    await scheduler.submit(EchoEngine("model"), items(1, tokens=10), ONLINE, None)
    stats = scheduler.stats()
    assert stats.ns_per_token["model"] > 0.0
    assert (stats.workers, stats.alive_threads) == (1, 2)
    assert (stats.queued_online_items, stats.queued_bulk_items) == (0, 0)


@pytest.mark.parametrize(("workers", "capacity"), [(0, 1), (1, 0)])
def test_scheduler_needs_a_worker_and_room(workers: int, capacity: int) -> None:
    """Impossible sizes are refused at once."""
    with pytest.raises(ValueError, match="at least 1"):
        TokenScheduler(workers, capacity)


async def test_bulk_work_goes_on_beside_online_work_and_gets_its_threads_back() -> None:
    """One bulk thread rests while online work is seen; the other goes on, and the resting one comes back."""
    scheduler = TokenScheduler(workers=2, capacity_items=64)
    try:
        engine = GatedEngine()
        await scheduler.submit(EchoEngine(), items(1), WorkClass.ONLINE, None)
        bulk = asyncio.create_task(scheduler.submit(engine, items(1, 2, 3), WorkClass.BULK, None))
        for _ in range(2):  # both threads have begun an item, and neither has ended one
            await asyncio.to_thread(engine.wait_begun)
        engine.gate.set()
        assert [outcome.value for outcome in await bulk] == [1, 2, 3]
    finally:
        await asyncio.to_thread(scheduler.stop)


BATCHES = PiecePolicy(budget_tokens=16, longest_tokens=8)


async def _behind(
    scheduler: TokenScheduler, engine: EchoEngine, *calls: list[TokenizedText]
) -> list[list[Outcome[int]]]:
    """Submits calls while the only worker is held, so that all of them wait together, and returns their outcomes."""
    gated = GatedEngine()
    blocker = asyncio.create_task(scheduler.submit(gated, items(0), ONLINE, None))
    await _begun(gated)
    tasks = [asyncio.create_task(scheduler.submit(engine, call, ONLINE, None)) for call in calls]
    await asyncio.sleep(0)
    gated.gate.set()
    await blocker
    return list(await asyncio.gather(*tasks))


async def test_items_of_like_length_share_a_piece(scheduler: TokenScheduler) -> None:
    """A batch holds what the budget allows, across calls; an item above it runs alone; outcomes keep their places."""
    engine = EchoEngine()
    scheduler.set_policy("echo", BATCHES)
    calls = [items(1, 2, tokens=4), [*items(3, tokens=40), *items(4, tokens=4)], items(5, tokens=4)]
    outcomes = await _behind(scheduler, engine, *calls)
    assert [[outcome.value for outcome in call] for call in outcomes] == [[1, 2], [3, 4], [5]]
    assert sorted(len(run) for run in engine.runs) == [1, 4]
    assert [3] in engine.runs
    stats = scheduler.stats()
    assert (stats.queued_online_items, stats.queued_bulk_items) == (0, 0)


async def test_failing_item_of_a_batch_fails_alone(scheduler: TokenScheduler) -> None:
    """One exception among 32 items of a piece: the other 31 have their values."""
    engine = EchoEngine(faults={17: ValueError})
    scheduler.set_policy("echo", PiecePolicy(budget_tokens=1_000, longest_tokens=8))
    [outcomes] = await _behind(scheduler, engine, items(*range(32)))
    assert len(engine.runs[0]) == 32
    assert [number for number, outcome in enumerate(outcomes) if outcome.value != number] == [17]
    assert isinstance(outcomes[17].error, EncodingFailed)
    assert isinstance(outcomes[17].error.__cause__, ValueError)


async def test_batch_leaves_out_what_came_too_late(scheduler: TokenScheduler) -> None:
    """Expired and cancelled calls are dropped when a piece is made, never computed."""
    engine, gated = EchoEngine(), GatedEngine()
    scheduler.set_policy("echo", BATCHES)
    blocker = asyncio.create_task(scheduler.submit(gated, items(0), ONLINE, None))
    await _begun(gated)
    left = asyncio.create_task(scheduler.submit(engine, items(1), ONLINE, None))
    late = asyncio.create_task(scheduler.submit(engine, items(2), ONLINE, time.monotonic_ns() + 20_000_000))
    stays = asyncio.create_task(scheduler.submit(engine, items(3), ONLINE, None))
    await asyncio.sleep(0)
    left.cancel()
    [expired] = await late
    assert isinstance(expired.error, WorkExpired)
    gated.gate.set()
    await blocker
    assert [outcome.value for outcome in await stays] == [3]
    assert engine.runs == [[3]]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_every_item_of_a_batch_that_kills_its_worker_has_an_outcome(scheduler: TokenScheduler) -> None:
    """No caller waits for a thread that is gone."""
    engine = EchoEngine(faults={2: EngineDied})
    scheduler.set_policy("echo", BATCHES)
    [outcomes] = await _behind(scheduler, engine, items(1, 2, 3))
    assert [type(outcome.error) for outcome in outcomes] == [EncodingFailed] * 3
    await asyncio.to_thread(engine.threads[-1].join)


async def test_times_of_a_batch_add_up_by_tokens(scheduler: TokenScheduler) -> None:
    """Each item is charged its share of the run."""
    scheduler.set_policy("echo", PiecePolicy(budget_tokens=1_000, longest_tokens=16))
    [outcomes] = await _behind(scheduler, EchoEngine(), [*items(1, tokens=12), *items(2, tokens=14)])
    assert outcomes[0].compute_ns > 0
    assert outcomes[1].compute_ns * 12 == pytest.approx(outcomes[0].compute_ns * 14, rel=0.01)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_missing_thread_is_told_and_started_when_the_system_gives_one(
    scheduler: TokenScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies while no thread can be started makes the scheduler unhealthy; the next call tries again."""
    told: list[bool] = []
    changed = threading.Event()

    def tell(healthy: bool) -> None:
        told.append(healthy)
        changed.set()

    scheduler.workers.watch(tell)
    engine = EchoEngine(faults={1: EngineDied})
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _no_thread)
        (outcome,) = await scheduler.submit(engine, items(1), ONLINE, None)
        assert isinstance(outcome.error, EncodingFailed)
        assert changed.wait(WAIT_S)
        assert not scheduler.workers.healthy
        assert scheduler.stats().alive_threads == 1
        scheduler.workers.heal()
        assert not scheduler.workers.healthy
    (outcome,) = await scheduler.submit(EchoEngine(), items(2), ONLINE, None)
    assert outcome.value == 2
    assert told == [False, True]
    engine.threads[0].join(WAIT_S)


def _no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_scheduler_keeps_nothing_of_a_call_that_has_ended(scheduler: TokenScheduler) -> None:
    """Memory is flat: neither the queue nor an idle thread holds on to items."""
    engine = EchoEngine()
    given = items(*range(8))
    seen = [weakref.ref(item.ids) for item in given]
    await scheduler.submit(engine, given, BULK, None)
    (outcome,) = await scheduler.submit(engine, items(99), BULK, time.monotonic_ns() - 1)
    assert isinstance(outcome.error, WorkExpired)
    await scheduler.submit(engine, items(100), BULK, None)  # what the only thread may still hold
    del given
    gc.collect()
    assert [found for found in seen if found() is not None] == []
