"""A second request when the first is slow: who wins, what becomes of the other, and how many there may be."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

import pytest

from retrieval.dispatch.types import Began, Finished
from retrieval.errors import BackendError, BackendUnavailable
from retrieval.route import Attempt, Outcome
from retrieval.speech import Delta
from tests.fakes.scripted_backends import END, Bench, Script, ScriptedBackend, Wait, job, says
from tests.fakes.virtual_time import run_virtual

QUICK: Script = [Wait(0.1), *says("Usual.")]
RESET = BackendUnavailable("a", "the connection to it failed")


class Hedged:
    """A backend `a` whose server has always answered within 100 ms, with what it does next, and what may help it."""

    def __init__(
        self, slow: Script, *others: ScriptedBackend, replica: Script | None = None, **settings: object
    ) -> None:
        self.primary = ScriptedBackend([*[QUICK] * 20, slow])
        self.replica = [] if replica is None else [ScriptedBackend([replica])]
        self.bench = Bench(
            [self.primary, *self.replica], *([other] for other in others), resilience={"hedge": True, **settings}
        )

    async def warm(self, **changed: object) -> None:
        """Gives the dispatcher its figures, and the first server the affinity `mine`."""
        self.bench.open(**changed)
        service = self.bench.services["a"]
        names = (f"session {number}" for number in range(100))
        self.mine = next(name for name in names if service.choose(job(name), (), ()) is service.endpoints[0])
        for _ in range(20):
            await self.ask()

    async def ask(self) -> tuple[str, tuple[Attempt, ...]]:
        """Returns an answer and the attempts at it."""
        text = ""
        async with aclosing(self.bench.stream(self.mine)) as events:
            async for event in events:
                text += event.text if isinstance(event, Delta) else ""
                if isinstance(event, Finished):
                    return text, event.report.attempts
        raise AssertionError


class Clinging(ScriptedBackend):
    """Is slow to close after its twentieth request."""

    tidied = 0

    async def stream(self, prompt, params):  # type: ignore[no-untyped-def]
        try:
            async with aclosing(super().stream(prompt, params)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            await asyncio.sleep(5.0 if len(self.asked) > 20 else 0.0)
            self.tidied += 1


def test_hedge_wins_when_the_first_is_slow() -> None:
    """After the usual time a second server is asked; its answer comes, the first one's request is closed at once."""
    hedged = Hedged([Wait(30.0), *says("Late.")], replica=[Wait(0.05), *says("Second one.")])

    async def main() -> None:
        await hedged.warm()
        text, attempts = await hedged.ask()
        assert text == "Second one. "
        assert [(each.server, each.outcome, each.hedge) for each in attempts] == [
            (0, Outcome.LOST, False),
            (1, Outcome.ANSWERED, True),
        ]
        assert attempts[0].first_token_ns == 150_000_000
        assert hedged.primary.ended_ns[-1] - hedged.primary.asked_ns[-1] == 150_000_000
        assert [each.hedges for each in hedged.bench.dispatcher.stats()] == [0, 1]
        # What it had taken so far counts: without the slowest the quantiles would sink.
        figures = hedged.bench.services["a"].endpoints[0].figures.first_token_ns
        assert (len(figures), figures.quantile(1.0)) == (21, 150_000_000)

    run_virtual(main())
    assert hedged.bench.is_idle()


def test_hedge_that_is_slower_is_called_off() -> None:
    """The first piece wins, whoever sends it."""
    hedged = Hedged([Wait(0.2), *says("First.")], replica=[Wait(30.0), *says("Second.")])

    async def main() -> None:
        await hedged.warm()
        text, attempts = await hedged.ask()
        assert text == "First. "
        assert [each.outcome for each in attempts] == [Outcome.ANSWERED, Outcome.LOST]

    run_virtual(main())
    assert hedged.bench.is_idle()


def test_hedge_whose_failure_comes_first_is_no_failure() -> None:
    """What a second request does wrong is not the first one's fault."""
    hedged = Hedged([Wait(0.2), *says("First.")], replica=[RESET])

    async def main() -> None:
        await hedged.warm()
        text, attempts = await hedged.ask()
        assert text == "First. "
        assert [each.outcome for each in attempts] == [Outcome.ANSWERED, Outcome.FAILED]

    run_virtual(main())
    assert hedged.bench.is_idle()


def test_hedge_goes_on_as_the_retry() -> None:
    """When the first fails meanwhile the second one answers, and no third is sent."""
    hedged = Hedged([Wait(0.2), RESET], replica=[Wait(1.0), *says("Second.")], retry_share=0.0)

    async def main() -> None:
        await hedged.warm()
        text, attempts = await hedged.ask()
        assert text == "Second. "
        assert [each.outcome for each in attempts] == [Outcome.FAILED, Outcome.ANSWERED]

    run_virtual(main())
    assert hedged.bench.is_idle()


def test_hedge_is_retried_when_both_fail() -> None:
    """Two failures are followed by a retry like one is."""
    hedged = Hedged([Wait(0.2), RESET], replica=[Wait(0.3), RESET])
    for server in (hedged.primary, *hedged.replica):
        server.scripts = [*server.scripts, says("Again.")]

    async def main() -> None:
        await hedged.warm()
        text, attempts = await hedged.ask()
        assert text == "Again. "
        assert [each.outcome for each in attempts] == [Outcome.FAILED, Outcome.FAILED, Outcome.ANSWERED]

    run_virtual(main())
    assert hedged.bench.is_idle()


def test_hedge_may_go_to_the_next_backend_of_the_route() -> None:
    """With its own context, and the answer names it."""
    hedged = Hedged([Wait(30.0), *says("Late.")], ScriptedBackend([says("Other.")], "b"))

    async def main() -> None:
        await hedged.warm()
        async with aclosing(hedged.bench.stream(hedged.mine)) as events:
            began = await anext(events)
            assert isinstance(began, Began)
            assert began.backend == "b"

    run_virtual(main())
    assert hedged.bench.is_idle()


@pytest.mark.parametrize("why", ["off", "few", "budget", "busy", "open", "ejected"])
def test_hedge_is_not_sent_without_need_and_room(why: str) -> None:
    """Not when it is off, too little is known, there were enough, or the other is busy, left alone or left out."""
    settings: dict[str, dict[str, object]] = {"off": {"hedge": False}, "budget": {"hedge_share": 0.01}}
    hedged = Hedged([Wait(0.3), *says("First.")], replica=says("Second."), **settings.get(why, {}))

    async def main() -> None:
        await hedged.warm(max_concurrent=1)
        other = hedged.bench.services["a"].endpoints[1]
        if why == "few":
            hedged.bench.services["a"].endpoints[0].figures.first_token_ns = type(other.figures.first_token_ns)()
        if why == "busy":
            place = await other.lane.acquire(job().ticket)
        if why == "ejected":
            other.sending(hedge=False, retry=False)
            for _ in range(20):
                other.failures.add(1)
        while why == "open" and other.breaker.admits:
            permit = other.breaker.enter()
            assert permit is not None
            other.breaker.fail(permit)
        assert (await hedged.ask())[0] == "First. "
        if why == "busy":
            place.release()

    run_virtual(main())
    assert not hedged.replica[0].asked


def test_hedge_does_not_go_to_a_backend_that_answers_worse() -> None:
    """A quick answer by a backend below the question's complexity is no help."""
    hedged = Hedged([Wait(0.3), *says("First.")], ScriptedBackend([says("Quick.")], "b"))

    async def main() -> None:
        await hedged.warm()
        service = hedged.bench.services["b"]
        service._settings = service.settings.model_copy(update={"capability": 0.1})
        assert (await hedged.ask())[0] == "First. "

    run_virtual(main())


def test_hedges_are_a_share_of_requests_at_most() -> None:
    """However many are slow, no more are hedged than the cap says."""
    hedged = Hedged([Wait(0.3), *says("Slow.")], replica=says("Quick."), hedge_share=0.05)

    async def main() -> None:
        await hedged.warm()
        for _ in range(180):
            await hedged.ask()

    run_virtual(main())
    assert 8 <= len(hedged.replica[0].asked) <= 10


@pytest.mark.parametrize("after_s", [0.05, 0.15])
def test_race_that_the_caller_leaves_is_closed(after_s: float) -> None:
    """One who leaves while one or two requests run leaves neither behind."""
    hedged = Hedged([Wait(30.0), *says("Late.")], replica=[Wait(30.0), *says("Late too.")])

    async def main() -> None:
        await hedged.warm()
        with suppress(TimeoutError):
            async with asyncio.timeout(after_s):
                await hedged.ask()
        assert hedged.bench.is_idle()
        left = [each.attempts[Outcome.LEFT] for each in hedged.bench.dispatcher.stats()]
        assert left == [1, int(after_s > 0.1)]

    run_virtual(main())


def test_loser_that_is_slow_to_close_does_not_hold_the_winner_up() -> None:
    """The answer begins when its first piece is there; the stream's end waits for all that was called off."""
    hedged = Hedged([])
    hedged.primary = Clinging([*[QUICK] * 20, [Wait(30.0), END]])
    hedged.bench = Bench([hedged.primary, ScriptedBackend([says("Second.")])], resilience={"hedge": True})

    async def main() -> None:
        await hedged.warm()
        now_s = asyncio.get_running_loop().time
        asked_s = now_s()
        async with aclosing(hedged.bench.stream(hedged.mine)) as events:
            await anext(events)
            assert now_s() - asked_s == pytest.approx(0.1)
        assert now_s() - asked_s == pytest.approx(5.1)

    run_virtual(main())
    assert hedged.bench.is_idle()

    assert hedged.bench.is_idle()


def test_caller_cancelled_again_while_a_loser_closes_leaves_no_place_behind() -> None:
    """A second cancellation goes up at once; what was called off ends by itself, undisturbed."""
    hedged = Hedged([])
    hedged.primary = clinging = Clinging([*[QUICK] * 20, [Wait(30.0), END]])
    hedged.bench = Bench([hedged.primary, ScriptedBackend([says("Second.")])], resilience={"hedge": True})

    async def main() -> None:
        await hedged.warm()
        task = asyncio.create_task(hedged.ask())
        await asyncio.sleep(0.2)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.1)
        assert task.cancelled()
        await asyncio.sleep(5.0)
        assert hedged.bench.is_idle()
        assert clinging.tidied == 21

    run_virtual(main())


def test_race_with_an_unforeseen_error_leaves_nothing_behind() -> None:
    """An error that backends are not meant to raise goes up as it is, and counts against the server."""
    hedged = Hedged([Wait(0.2), ValueError("bug")], replica=[Wait(30.0), END])

    async def main() -> None:
        await hedged.warm()
        with pytest.raises(ValueError, match="bug"):
            await hedged.ask()

    run_virtual(main())
    assert hedged.bench.is_idle()
    first, second = hedged.bench.dispatcher.stats()
    assert (first.attempts[Outcome.FAILED], second.attempts[Outcome.LOST]) == (1, 1)


def test_hedge_error_is_the_most_telling_when_all_fail() -> None:
    """One error for two failures: the one that says most."""
    hedged = Hedged([Wait(0.2), RESET], replica=[BackendUnavailable("a", "refused", transient=False, status=401)])

    async def main() -> None:
        await hedged.warm(retries=0)
        with pytest.raises(BackendError, match="refused"):
            await hedged.ask()

    run_virtual(main())
    assert hedged.bench.is_idle()
