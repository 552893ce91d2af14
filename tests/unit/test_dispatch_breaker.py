"""When a server gets nothing, when a single request tries it, and what counts against it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

import pytest
import structlog

from retrieval.dispatch.breaker import MAX_DOUBLINGS, Breaker, BreakerState, Permit
from retrieval.errors import BackendError, BackendTimeout, BackendUnavailable, RetrievalError
from retrieval.settings.generation import ResilienceSettings
from retrieval.speech import Delta
from tests.fakes.scripted_backends import END, Bench, ScriptedBackend, Step, Wait, job, says
from tests.fakes.virtual_time import run_virtual

OPEN_NS = 5_000_000_000
RESET = BackendUnavailable("a", "the connection to it failed")


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now_ns = 7

    def __call__(self) -> int:
        return self.now_ns


def entered(breaker: Breaker) -> Permit:
    """Returns leave to send a request, which there must be."""
    permit = breaker.enter()
    assert permit is not None
    return permit


def opened(clock: Clock, failures: int = 2) -> Breaker:
    """Returns a breaker that has just opened."""
    breaker = Breaker(lambda: ResilienceSettings(failures_to_open=failures), clock)
    assert [breaker.fail(entered(breaker)) for _ in range(failures)] == [False] * (failures - 1) + [True]
    return breaker


def test_breaker_opens_after_failures_in_a_row_only() -> None:
    """A whole answer between them starts the count anew."""
    breaker = Breaker(lambda: ResilienceSettings(failures_to_open=3), Clock())
    for fails in (True, True, False, True, True):
        permit = entered(breaker)
        if fails:
            assert not breaker.fail(permit)
        else:
            breaker.succeed(permit)
    assert breaker.fail(entered(breaker))
    assert (breaker.state, breaker.enter()) == (BreakerState.OPEN, None)


def test_breaker_lets_a_single_request_try() -> None:
    """After the pause one request goes through, and all when its first piece has come."""
    clock = Clock()
    breaker = opened(clock)
    assert breaker.left_alone_ns == OPEN_NS
    clock.now_ns += OPEN_NS
    assert breaker.state is BreakerState.HALF_OPEN
    probe = entered(breaker)
    assert not breaker.admits
    breaker.succeed(breaker.begun(probe))
    assert (breaker.state, breaker.admits) == (BreakerState.CLOSED, True)


def test_breaker_pauses_double_to_a_bound_until_an_answer_was_whole() -> None:
    """Each failed probe doubles the pause; a whole answer makes it short again."""
    clock = Clock()
    breaker = opened(clock)
    pauses = list[int]()
    for _ in range(MAX_DOUBLINGS + 2):
        pauses.append(breaker.left_alone_ns // OPEN_NS)
        clock.now_ns += breaker.left_alone_ns
        assert breaker.fail(entered(breaker))
    assert pauses == [*(2**n for n in range(MAX_DOUBLINGS + 1)), 2**MAX_DOUBLINGS]
    clock.now_ns += breaker.left_alone_ns
    breaker.succeed(breaker.begun(entered(breaker)))
    assert [breaker.fail(entered(breaker)) for _ in range(2)][-1]
    assert breaker.left_alone_ns == OPEN_NS


def test_breaker_learns_nothing_of_a_probe_that_was_called_off() -> None:
    """The next request tries instead."""
    clock = Clock()
    breaker = opened(clock)
    clock.now_ns += OPEN_NS
    breaker.forget(entered(breaker))
    assert breaker.admits


def test_breaker_does_not_count_what_was_sent_before_it_changed() -> None:
    """Requests that time out long after a probe has found the server well do not close it off again."""
    clock = Clock()
    breaker = Breaker(lambda: ResilienceSettings(failures_to_open=2), clock)
    late = [entered(breaker) for _ in range(10)]
    assert breaker.fail(late.pop()) is False
    assert breaker.fail(late.pop()) is True
    assert not any(breaker.fail(permit) for permit in late[:3])
    assert breaker.left_alone_ns == OPEN_NS
    clock.now_ns += OPEN_NS
    breaker.succeed(breaker.begun(entered(breaker)))
    assert not any(breaker.fail(permit) for permit in late[3:])
    assert breaker.state is BreakerState.CLOSED


async def ask_often(bench: Bench, count: int, seconds: float = 60.0) -> list[type[RetrievalError]]:
    """Asks so often, one after the other; returns the errors."""
    errors = list[type[RetrievalError]]()
    for _ in range(count):
        try:
            async with aclosing(bench.stream(seconds=seconds)) as events:
                async for _event in events:
                    pass
        except RetrievalError as error:
            errors.append(type(error))
    return errors


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (RESET, 3),
        (BackendTimeout("a", 1.0), 3),
        (BackendUnavailable("a", "refused", status=429), 3),
        (BackendUnavailable("a", "refused", transient=False, status=401), 3),
        (BackendUnavailable("a", "refused", transient=False, status=404), 3),
        (BackendUnavailable("a", "garbage", transient=False), 3),
        (BackendUnavailable("a", "refused", transient=False, status=400), 10),
        (BackendUnavailable("a", "refused", transient=False, status=413), 10),
    ],
)
def test_server_is_left_alone_for_its_own_faults_only(error: BackendError, asked: int) -> None:
    """A request that a server rightly refuses says nothing about the server."""
    backend = ScriptedBackend([[error]])
    bench = Bench([backend], resilience={"failures_to_open": 3})

    async def main() -> None:
        bench.open(retries=0)
        assert len(await ask_often(bench, 10)) == 10

    run_virtual(main())
    assert len(backend.asked) == asked
    assert bench.is_idle()


def test_hasty_callers_do_not_close_a_server_off() -> None:
    """A time-out at the caller's own deadline is not the server's."""
    backend = ScriptedBackend([[Wait(0.1), BackendTimeout("a", 100.0)]])
    bench = Bench([backend], resilience={"failures_to_open": 3})

    async def main() -> None:
        bench.open(retries=0)
        await ask_often(bench, 10, seconds=0.1)

    run_virtual(main())
    assert len(backend.asked) == 10


@pytest.mark.parametrize(("patience_s", "asked"), [(0.5, 10), (2.0, 3)])
def test_server_that_hangs_is_left_alone_however_soon_its_callers_leave(patience_s: float, asked: int) -> None:
    """Silence far beyond the usual counts against a server, also when its callers or their deadlines end it."""
    usual: list[Step] = [Wait(0.1), *says("Blue.")]
    backend = ScriptedBackend([*[usual] * 20, [Wait(100.0), END]])
    bench = Bench([backend], resilience={"failures_to_open": 3})

    async def main() -> None:
        bench.open(retries=0)
        await ask_often(bench, 20)
        for _ in range(10):
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await ask_often(bench, 1)

    run_virtual(main())
    assert len(backend.asked) == 20 + asked


def test_server_that_is_left_alone_costs_the_route_nothing() -> None:
    """The next backend answers at once, without a retry being paid; a probe brings the first one back."""
    first = ScriptedBackend([*[[RESET]] * 3, says("First.")])
    bench = Bench(
        [first], [ScriptedBackend([says("Second.")], "b")], resilience={"failures_to_open": 3, "retry_share": 0.05}
    )

    async def main() -> None:
        bench.open(retries=0)
        assert not await ask_often(bench, 10)
        assert len(first.asked) == 3
        assert not bench.services["a"].outlook(job().ticket).healthy
        await asyncio.sleep(5.0)
        assert bench.services["a"].outlook(job().ticket).healthy
        await ask_often(bench, 2)
        assert len(first.asked) == 5

    run_virtual(main())


def test_probe_that_is_under_way_keeps_others_away() -> None:
    """While one request tries a server the others go elsewhere, and are told why when there is nothing else."""
    backend = ScriptedBackend([[RESET], [Wait(1.0), *says("Back.")], says("Blue.")])
    bench = Bench([backend], resilience={"failures_to_open": 1})

    async def main() -> None:
        bench.open(retries=0)
        assert await ask_often(bench, 2) == [BackendUnavailable] * 2
        await asyncio.sleep(5.0)
        probe = asyncio.create_task(ask_often(bench, 1))
        await asyncio.sleep(0.5)
        assert await ask_often(bench, 1) == [BackendUnavailable]
        assert not await probe
        assert not await ask_often(bench, 3)

    run_virtual(main())
    assert len(backend.asked) == 5


def test_probe_whose_caller_leaves_is_taken_up_by_the_next_request() -> None:
    """Nothing was learnt of the server, so the next one tries it."""
    backend = ScriptedBackend([[RESET], [Wait(5.0), END], says("Back.")])
    bench = Bench([backend], resilience={"failures_to_open": 1})

    async def main() -> None:
        bench.open(retries=0)
        await ask_often(bench, 1)
        await asyncio.sleep(5.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await ask_often(bench, 1)
        assert not await ask_often(bench, 3)

    run_virtual(main())
    assert len(backend.asked) == 5


def test_server_that_opens_while_requests_wait_does_not_get_them() -> None:
    """Those in its queue are not sent to a server that has failed meanwhile."""
    backend = ScriptedBackend([[Wait(0.5), RESET]])
    bench = Bench([backend], resilience={"failures_to_open": 1})

    async def main() -> None:
        bench.open(retries=0, max_concurrent=1)
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ask_often(bench, 1)) for _ in range(5)]
        assert [task.result() for task in asked] == [[BackendUnavailable]] * 5

    run_virtual(main())
    assert len(backend.asked) == 1
    assert bench.is_idle()


def test_server_that_always_cuts_is_left_alone() -> None:
    """Answers that begin and break off are failures, though each first piece came."""
    cut: list[Step] = [Delta("It "), RESET]
    backend = ScriptedBackend([cut])
    bench = Bench([backend], resilience={"failures_to_open": 3})

    async def main() -> None:
        bench.open()
        await ask_often(bench, 10)
        await asyncio.sleep(5.0)
        await ask_often(bench, 10)
        assert bench.services["a"].endpoints[0].breaker.left_alone_ns == 2 * OPEN_NS

    run_virtual(main())
    assert len(backend.asked) == 3 + 3


def test_failures_are_logged_without_texts() -> None:
    """Which server, what became of it, and the error's class; opening and closing besides."""
    backend = ScriptedBackend([[BackendUnavailable("a", "SECRET")], says("Back.")])
    bench = Bench([backend], resilience={"failures_to_open": 1})

    async def main() -> None:
        bench.open(retries=0)
        await ask_often(bench, 1)
        await asyncio.sleep(5.0)
        with suppress(BackendError):
            await ask_often(bench, 1)

    with structlog.testing.capture_logs() as logs:
        run_virtual(main())
    assert [log["event"] for log in logs] == ["backend_attempt_failed", "backend_opened", "backend_closed"]
    assert logs[0] == {
        "event": "backend_attempt_failed",
        "log_level": "warning",
        "backend": "a",
        "server": 0,
        "outcome": "failed",
        "error": "BackendUnavailable",
    }
    assert "SECRET" not in repr(logs)
