"""Callers that leave: all upstream work has stopped when they are gone."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing, suppress

import pytest

from retrieval.dispatch.types import AnswerEvent, Began, Finished
from retrieval.errors import BackendUnavailable
from retrieval.route import Outcome
from retrieval.speech import Delta
from tests.fakes.scripted_backends import END, Bench, ScriptedBackend, Step, Wait, says
from tests.fakes.virtual_time import run_virtual

ENDLESS: list[Step] = [*(Wait(0.1), Delta("word ")) * 200, END]


def test_callers_that_leave_close_their_requests_at_once() -> None:
    """Case GEN-11: 50 leave after a token; each request upstream is closed by then, and the 51st gets through."""
    backend = ScriptedBackend([*[ENDLESS] * 50, says("Blue.")])
    bench = Bench([backend])

    async def main() -> None:
        bench.open(max_concurrent=1, max_queued=0)
        for _ in range(50):
            async with aclosing(bench.stream()) as events:
                assert isinstance(await anext(events), Began)
                assert isinstance(await anext(events), Delta)
            assert bench.is_idle()
        async with aclosing(bench.stream()) as events:
            assert isinstance([event async for event in events][-1], Finished)

    run_virtual(main())
    assert bench.dispatcher.stats()[0].attempts[Outcome.LEFT] == 50
    assert bench.services["a"].endpoints[0].breaker.admits


@pytest.mark.parametrize("when", ["queue", "pause", "first", "later", "began"])
def test_caller_that_is_cancelled_leaves_nothing_behind(when: str) -> None:
    """Wherever the caller is cancelled: place and stream are given back, and the cancellation goes up."""
    reset = BackendUnavailable("a", "the connection to it failed")
    scripts: dict[str, list[Step]] = {"pause": [reset], "first": [Wait(50.0)], "queue": [Wait(50.0), END]}
    bench = Bench([ScriptedBackend([scripts.get(when, ENDLESS)])], resilience={"backoff_ms": 10_000})
    seen = list[AnswerEvent]()

    async def ask() -> None:
        async with aclosing(bench.stream()) as events:
            async for event in events:
                seen.append(event)
                if when == "began":
                    await asyncio.sleep(100.0)

    async def main() -> None:
        bench.open(max_concurrent=1)
        tasks = [asyncio.create_task(ask()) for _ in range(2 if when == "queue" else 1)]
        await asyncio.sleep(0.45)
        for task in reversed(tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()
        assert bench.is_idle()

    run_virtual(main())
    left = bench.dispatcher.stats()[0].attempts[Outcome.LEFT]
    assert left == {"pause": 0, "queue": 2}.get(when, 1)
    assert bool(seen) is (when in ("later", "began"))
    gc.collect()


def test_caller_that_leaves_at_the_end_was_answered() -> None:
    """The answer was whole when `Finished` came."""
    bench = Bench([ScriptedBackend([says("Blue.")])])

    async def main() -> None:
        bench.open()
        async with aclosing(bench.stream()) as events:
            while not isinstance(await anext(events), Finished):
                pass
            assert bench.is_idle()

    run_virtual(main())
    attempts = bench.dispatcher.stats()[0].attempts
    assert (attempts[Outcome.ANSWERED], attempts[Outcome.LEFT]) == (1, 0)


def test_stream_that_is_never_read_asks_nobody() -> None:
    """Without a reader nothing is sent."""
    backend = ScriptedBackend([says("Blue.")])
    bench = Bench([backend])

    async def main() -> None:
        bench.open()
        await bench.stream().aclose()

    run_virtual(main())
    assert not backend.asked


def test_slow_reader_pulls_no_piece_ahead() -> None:
    """A piece is taken from the backend when it is asked for, so a slow reader never grows memory."""
    drawn = list[int]()

    class Counting(ScriptedBackend):
        async def stream(self, prompt, params):  # type: ignore[no-untyped-def]
            for number in range(100):
                drawn.append(number)
                yield Delta("word ")
            yield END

    bench = Bench([Counting([])])

    async def main() -> None:
        bench.open()
        async with aclosing(bench.stream()) as events:
            for _ in range(4):
                await anext(events)
                await asyncio.sleep(1.0)
            assert len(drawn) <= 3

    run_virtual(main())


def test_dispatcher_closes_all_backends() -> None:
    """Every server's backend is closed, also after one that cannot be."""

    class Stuck(ScriptedBackend):
        async def close(self) -> None:
            raise OSError("stuck")

    backends = [ScriptedBackend([], "a"), Stuck([], "b"), ScriptedBackend([], "c")]
    bench = Bench(*([backend] for backend in backends))

    async def main() -> None:
        bench.open()
        with pytest.raises(OSError, match="stuck"):
            await bench.dispatcher.close()

    run_virtual(main())
    assert [backend.closed for backend in backends] == [True, False, True]
