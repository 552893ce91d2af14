"""One answer from one backend of the route, whatever fails on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from itertools import pairwise

import pytest

from retrieval.dispatch.lane import Lane, LaneBounds
from retrieval.dispatch.types import AnswerEvent, Began, Finished
from retrieval.errors import BackendCut, BackendError, BackendTimeout, BackendUnavailable, Overloaded
from retrieval.route import Outcome
from retrieval.settings.generation import QueueSettings
from retrieval.speech import Delta, ToolCall
from tests.fakes.scripted_backends import CONTEXT, END, Bench, NotingArranger, ScriptedBackend, Step, Wait, job, says
from tests.fakes.virtual_time import START_S, now_ns, run_virtual


def reset(name: str = "a", **facts: object) -> BackendUnavailable:
    """Returns the error of a connection that was reset."""
    return BackendUnavailable(name, "the connection to it failed", **facts)  # type: ignore[arg-type]


async def read(events: AsyncGenerator[AnswerEvent, None]) -> list[AnswerEvent]:
    """Reads to the end."""
    async with aclosing(events):
        return [event async for event in events]


def text_of(events: list[AnswerEvent]) -> str:
    """Returns the text of an answer."""
    return "".join(event.text for event in events if isinstance(event, Delta))


def outcomes(events: list[AnswerEvent]) -> list[Outcome]:
    """Returns what became of each attempt."""
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [attempt.outcome for attempt in finished.report.attempts]


def test_stream_begins_with_the_prompt_and_ends_with_a_report() -> None:
    """What was sent, the pieces, and how the answer came about with its times."""
    backend = ScriptedBackend([[Wait(0.2), Delta("It "), Wait(0.1), Delta("is "), Wait(0.3), Delta("blue."), END]])
    bench = Bench([backend])

    async def main() -> None:
        bench.open()
        events = await read(bench.stream("session"))
        assert isinstance(events[0], Began)
        assert (events[0].backend, events[0].prompt.context) == ("a", CONTEXT)
        assert text_of(events) == "It is blue."
        finished = events[-1]
        assert isinstance(finished, Finished)
        report = finished.report
        assert (report.first_token_ns, report.token_ns, report.total_ns) == (200_000_000, 200_000_000, 600_000_000)
        assert (report.backend, report.passages, finished.end) == ("a", (2, 1), END)
        assert backend.asked[0][1].affinity == "session"

    run_virtual(main())
    assert bench.is_idle()


def test_stream_tells_the_arranger_what_it_sent_and_what_the_server_had_cached() -> None:
    """Once for the request, and once for the usage of the whole answer."""
    bench = Bench([ScriptedBackend([says("It is blue.")])])

    async def main() -> None:
        bench.open()
        await read(bench.stream())

    run_virtual(main())
    arranger = bench.services["a"].endpoints[0].arranger
    assert isinstance(arranger, NotingArranger)
    assert (arranger.sent_count, arranger.learnt) == (1, [END.usage])


def test_stream_passes_reasoning_and_tool_calls_on() -> None:
    """Any kind of piece is a first piece, and none is changed."""
    pieces = [Delta("", reasoning="Hm."), Delta("", tool_calls=(ToolCall(0, "1", "f", "{}"),))]
    bench = Bench([ScriptedBackend([[*pieces, END]])])

    async def main() -> list[AnswerEvent]:
        bench.open()
        return await read(bench.stream())

    assert run_virtual(main())[1:-1] == pieces


def test_stream_of_an_empty_answer_begins_and_finishes() -> None:
    """An end without a piece is an answer."""
    bench = Bench([ScriptedBackend([[END]])])

    async def main() -> list[AnswerEvent]:
        bench.open()
        return await read(bench.stream())

    assert [type(event) for event in run_virtual(main())] == [Began, Finished]


@pytest.mark.parametrize("after", [0, 2])
def test_stream_never_doubles_text(after: int) -> None:
    """Case GEN-10: a reset before any token is retried; one after some is an error, nothing else is begun."""
    first: list[Step] = [*says("Turn the")[:after], reset()]
    backend = ScriptedBackend([first, says("Turn the key.")])
    bench = Bench([backend])

    async def main() -> None:
        bench.open()
        events, received_chars = list[AnswerEvent](), 0
        try:
            async for event in bench.stream():
                events.append(event)
        except BackendCut as error:
            received_chars = error.received_chars
        assert received_chars == (len("Turn the ") if after else 0)
        assert text_of(events) == ("Turn the " if after else "Turn the key. ")
        assert sum(isinstance(event, Began) for event in events) == 1
        assert isinstance(events[-1], Finished) is not bool(after)

    run_virtual(main())
    assert len(backend.asked) == (1 if after else 2)
    assert bench.is_idle()
    assert bench.dispatcher.stats()[0].attempts[Outcome.CUT] == bool(after)


@pytest.mark.parametrize("broken", [[], [BackendTimeout("a", 1.0)], [BackendCut("a", 0)]])
def test_stream_that_ends_too_early_is_cut(broken: list[Step]) -> None:
    """After the first piece any failure, and an end without an end, is a cut."""
    bench = Bench([ScriptedBackend([[Delta("It "), *broken]])], [ScriptedBackend([says("Red.")], "b")])

    async def main() -> None:
        bench.open()
        with pytest.raises(BackendCut):
            await read(bench.stream())

    run_virtual(main())
    assert bench.is_idle()


@pytest.mark.parametrize("broken", [[], [BackendTimeout("a", 1.0)], [BackendCut("a", 0)], [reset()]])
def test_stream_retries_what_failed_before_the_first_piece(broken: list[Step]) -> None:
    """On the same backend, after a pause, and the report tells of both."""
    backend = ScriptedBackend([broken, says("Blue.")])
    bench = Bench([backend], resilience={"backoff_ms": 400})

    async def main() -> list[AnswerEvent]:
        bench.open()
        return await read(bench.stream())

    events = run_virtual(main())
    assert text_of(events) == "Blue. "
    assert len(outcomes(events)) == 2
    assert backend.asked_ns[1] - backend.asked_ns[0] == 400_000_000
    assert bench.dispatcher.stats()[0].retries == 1


def test_stream_pauses_longer_before_each_retry() -> None:
    """The pause doubles, give or take half of it."""
    backend = ScriptedBackend([[reset()]])
    bench = Bench([backend], jitter=0.25, resilience={"backoff_ms": 400})

    async def main() -> None:
        bench.open(retries=3)
        with pytest.raises(BackendUnavailable):
            await read(bench.stream())

    run_virtual(main())
    pauses_ns = [later - sooner for sooner, later in pairwise(backend.asked_ns)]
    assert pauses_ns == [300_000_000, 600_000_000, 1_200_000_000]


def test_stream_holds_no_place_while_it_pauses() -> None:
    """Others are served before a retry."""
    backend = ScriptedBackend([[reset()], says("Other.")])
    bench = Bench([backend], resilience={"backoff_ms": 5000})

    async def main() -> None:
        bench.open(max_concurrent=1, max_queued=0)
        pausing = asyncio.create_task(read(bench.stream()))
        await asyncio.sleep(0.1)
        assert text_of(await read(bench.stream())) == "Other. "
        await pausing

    run_virtual(main())


@pytest.mark.parametrize("error", [reset(status=429), reset(status=503), BackendTimeout("a", 1.0)])
def test_stream_tells_the_queue_that_a_server_is_full(error: BackendError) -> None:
    """It then gets fewer requests at once."""
    bench = Bench([ScriptedBackend([[error]])])

    async def main() -> None:
        bench.open(retries=0, max_concurrent=4)
        await asyncio.sleep(1.0)
        with pytest.raises(type(error)):
            await read(bench.stream())

    run_virtual(main())
    assert bench.dispatcher.stats()[0].limit < 4


def test_stream_tells_the_queue_how_soon_a_server_answers() -> None:
    """It then gets more requests at once when they ask for more."""
    bench = Bench([ScriptedBackend([[Wait(0.1), *says("Blue.")]])])

    async def main() -> None:
        bench.open()
        endpoint = bench.services["a"].endpoints[0]
        endpoint.lane = Lane("a", LaneBounds(64, 64, 2), QueueSettings, now_ns)
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(read(bench.stream()))

    run_virtual(main())
    assert bench.dispatcher.stats()[0].limit > 2


def test_stream_prefers_another_server_for_a_retry() -> None:
    """A server that has just failed is not the first to be asked again."""
    servers = [ScriptedBackend([[reset()]]), ScriptedBackend([[reset()]]), ScriptedBackend([[reset()]])]
    bench = Bench(servers)

    async def main() -> None:
        bench.open(retries=2)
        with pytest.raises(BackendUnavailable):
            await read(bench.stream())

    run_virtual(main())
    assert [len(server.asked) for server in servers] == [1, 1, 1]


def test_stream_falls_back_along_the_route_only() -> None:
    """When one backend does not answer the next of the route does, and no other is asked."""
    first, second, third = (ScriptedBackend([[reset(name)], [reset(name)], says(name)], name) for name in "abc")
    bench = Bench([first], [second], [third])

    async def main() -> None:
        bench.open(retries=0)
        route = bench.route()
        two = type(route)(route.legs[:2], route.report)
        with pytest.raises(BackendUnavailable, match="'b'"):
            await read(bench.dispatcher.stream(two, job()))

    run_virtual(main())
    assert [len(backend.asked) for backend in (first, second, third)] == [1, 1, 0]


def test_stream_goes_on_at_once_after_a_refusal_that_will_not_change() -> None:
    """A failure that is not transient is not retried; the next backend of the route is asked."""
    first = ScriptedBackend([[reset(transient=False, status=401)]])
    bench = Bench([first], [ScriptedBackend([says("Blue.")], "b")])

    async def main() -> list[AnswerEvent]:
        bench.open(retries=3)
        return await read(bench.stream())

    events = run_virtual(main())
    assert isinstance(events[0], Began)
    assert (events[0].backend, len(first.asked)) == ("b", 1)


def test_stream_asks_another_server_at_once() -> None:
    """The pause is for a server to recover; one that has not failed needs none."""
    servers = [ScriptedBackend([[reset(retry_after_s=9.0)], says("Blue.")]) for _ in range(2)]
    bench = Bench(servers)

    async def main() -> None:
        bench.open(retries=2)
        assert text_of(await read(bench.stream())) == "Blue. "

    run_virtual(main())
    asked_ns = sorted(at - round(START_S * 1e9) for server in servers for at in server.asked_ns)
    assert asked_ns == [0, 0, 9_000_000_000]


@pytest.mark.parametrize(("retry_after_s", "asked"), [(1.5, [0, 1_500_000_000]), (50.0, [0])])
def test_stream_waits_as_long_as_a_server_asks_if_there_is_time(retry_after_s: float, asked: list[int]) -> None:
    """Retry-After is honoured within the deadline; beyond it the failure is told at once."""
    backend = ScriptedBackend([[reset(status=429, retry_after_s=retry_after_s)], says("Blue.")])
    bench = Bench([backend])

    async def main() -> None:
        bench.open()
        with suppress(BackendUnavailable):
            await read(bench.stream(seconds=10.0))

    run_virtual(main())
    assert [at - round(START_S * 1e9) for at in backend.asked_ns] == asked


def test_stream_does_not_wait_for_a_server_while_another_backend_may_answer() -> None:
    """A long Retry-After moves the request on."""
    first = ScriptedBackend([[reset(status=429, retry_after_s=20.0)], says("Late.")])
    bench = Bench([first], [ScriptedBackend([says("Soon.")], "b")])

    async def main() -> str:
        bench.open()
        return text_of(await read(bench.stream()))

    assert run_virtual(main()) == "Soon. "


def test_stream_tells_the_most_telling_error() -> None:
    """A refusal that will not change says more than a time-out, and that more than a lost connection."""
    errors: list[BackendError] = [BackendTimeout("a", 1.0), reset("b", transient=False, status=400), reset("c")]
    bench = Bench(*([ScriptedBackend([[error]], name)] for name, error in zip("abc", errors, strict=True)))

    async def main() -> None:
        bench.open(retries=0)
        with pytest.raises(BackendUnavailable, match="'b'"):
            await read(bench.stream())

    run_virtual(main())


def test_stream_spends_no_more_retries_than_the_budget_has() -> None:
    """With the budget spent a failure is told at once: a backend that is down is not asked twice as often."""
    backend = ScriptedBackend([[reset()]])
    bench = Bench([backend], resilience={"retry_share": 0.01, "failures_to_open": 1000})

    async def main() -> None:
        bench.open()
        for _ in range(10):
            with pytest.raises(BackendUnavailable):
                await read(bench.stream())

    run_virtual(main())
    assert len(backend.asked) == 13


def test_stream_is_refused_when_no_server_has_room() -> None:
    """Case GEN-13: a request that waits in vain is refused at the end of its patience, not answered."""
    bench = Bench([ScriptedBackend([[Wait(10.0), *says("Blue.")]])])

    async def main() -> None:
        bench.open(max_concurrent=1)
        running = asyncio.create_task(read(bench.stream()))
        await asyncio.sleep(0)
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(Overloaded):
            await read(bench.stream())
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(1.0)
        await running

    run_virtual(main())
    assert bench.dispatcher.stats()[0].attempts[Outcome.REFUSED] == 1


def test_stream_that_all_refuse_says_when_the_first_may_have_room() -> None:
    """The shortest time after which to come back, over all backends of the route."""
    slow, quick = ScriptedBackend([[Wait(8.0), END]]), ScriptedBackend([[Wait(3.0), END]], "b")
    bench = Bench([slow], [quick])

    async def main() -> None:
        bench.open(max_concurrent=1, max_queued=0)
        for _ in range(2):  # the second time they know how long an answer takes
            running = [asyncio.create_task(read(bench.stream())) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(Overloaded) as refused:
                await read(bench.stream())
            await asyncio.gather(*running)
        assert refused.value.resource == "requests to b"

    run_virtual(main())


def test_stream_stops_at_its_deadline() -> None:
    """After it nothing is sent any more, however many backends are left."""
    first = ScriptedBackend([[Wait(5.0), BackendTimeout("a", 5000.0)]])
    second = ScriptedBackend([says("Late.")], "b")
    bench = Bench([first], [second])

    async def main() -> None:
        bench.open()
        with pytest.raises(BackendTimeout):
            await read(bench.stream(seconds=5.0))

    run_virtual(main())
    assert (len(first.asked), len(second.asked)) == (1, 0)


def test_stream_goes_to_the_next_backend_when_one_has_no_room() -> None:
    """Nothing was sent yet, so that costs no retry."""
    bench = Bench(
        [ScriptedBackend([[Wait(10.0), *says("One.")]])],
        [ScriptedBackend([says("Two.")], "b")],
        resilience={"retry_share": 0.0},
    )

    async def main() -> None:
        bench.open(max_concurrent=1, max_queued=0)
        running = asyncio.create_task(read(bench.stream()))
        await asyncio.sleep(0)
        events = await read(bench.stream())
        assert text_of(events) == "Two. "
        assert outcomes(events) == [Outcome.REFUSED, Outcome.ANSWERED]
        await running

    run_virtual(main())
