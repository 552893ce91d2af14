"""Answers under any failures of any servers: one backend's words, nothing sent too often, nothing left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.dispatch.types import AnswerEvent, Began, Finished
from retrieval.errors import BackendCut, BackendTimeout, BackendUnavailable, RetrievalError
from retrieval.route import Outcome
from retrieval.speech import BackendEnd, Delta
from tests.fakes.scripted_backends import END, Bench, Script, ScriptedBackend, Step, Wait
from tests.fakes.virtual_time import run_virtual

RETRIES = 2
_ERRORS = st.sampled_from(
    [
        BackendUnavailable("x", "reset"),
        BackendUnavailable("x", "refused", status=429, retry_after_s=0.5),
        BackendUnavailable("x", "refused", status=429, retry_after_s=100.0),
        BackendUnavailable("x", "refused", transient=False, status=400),
        BackendUnavailable("x", "refused", transient=False, status=401),
        BackendTimeout("x", 10.0),
        BackendCut("x", 3),
    ]
)
_WAITS = st.builds(Wait, st.sampled_from([0.0, 0.02, 0.3, 3.0]))
_ENDS: st.SearchStrategy[list[Step]] = st.one_of(
    st.just([END]), st.just([END]), st.just([]), st.lists(_ERRORS, min_size=1, max_size=1)
)


@st.composite
def _scripts(draw: st.DrawFn) -> Script:
    words: list[Step] = [Delta(f"{word} ") for word in draw(st.lists(st.sampled_from("uvw"), max_size=3))]
    steps: list[Step] = []
    for word in words:
        steps += [*draw(st.lists(_WAITS, max_size=1)), word]
    return [*draw(st.lists(_WAITS, max_size=1)), *steps, *draw(st.lists(_WAITS, max_size=1)), *draw(_ENDS)]


@dataclass
class Heard:
    """What one caller saw."""

    events: list[AnswerEvent] = field(default_factory=list)
    error: RetrievalError | None = None


class Noting(ScriptedBackend):
    """Notes for each request what it gave of its script."""

    def __init__(self, scripts: Sequence[Script], name: str) -> None:
        super().__init__(scripts, name)
        self.gave: list[list[Delta | BackendEnd]] = []

    async def stream(self, prompt, params):  # type: ignore[no-untyped-def]
        gave: list[Delta | BackendEnd] = []
        self.gave.append(gave)
        async with aclosing(super().stream(prompt, params)) as pieces:
            async for piece in pieces:
                gave.append(piece)
                yield piece


async def _ask(bench: Bench, patience_s: float | None) -> Heard:
    heard = Heard()
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            try:
                async with aclosing(bench.stream(seconds=20.0)) as events:
                    async for event in events:
                        heard.events.append(event)
            except RetrievalError as error:
                heard.error = error
    return heard


def _check(heard: Heard, backends: Sequence[Noting]) -> None:
    began = [event for event in heard.events if isinstance(event, Began)]
    pieces: list[AnswerEvent] = [event for event in heard.events if isinstance(event, Delta)]
    finished = [event for event in heard.events if isinstance(event, Finished)]
    assert len(began) <= 1
    assert heard.events == [*began, *pieces, *finished]
    if not began:
        return
    gave = [each for backend in backends if backend.name == began[0].backend for each in backend.gave]
    assert any(each[: len(pieces)] == pieces for each in gave)
    if finished:
        assert any(each == [*pieces, finished[0].end] for each in gave)
        report = finished[0].report
        assert [each.outcome for each in report.attempts].count(Outcome.ANSWERED) == 1
    elif heard.error is not None:
        assert isinstance(heard.error, BackendCut)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.lists(_scripts(), min_size=1, max_size=3), min_size=1, max_size=2), min_size=1, max_size=2),
    st.lists(st.sampled_from([None, None, 0.01, 0.31, 1.0]), min_size=1, max_size=4),
    st.booleans(),
    st.integers(1, 2),
)
def test_dispatch_gives_one_answer_and_leaves_nothing(
    scripts: list[list[list[Script]]], callers: list[float | None], hedge: bool, places: int
) -> None:
    """What a caller gets is a beginning of what one server gave, and all of it when it finishes.

    No more is sent than the settings allow; places are free and streams closed when the callers are gone.
    """
    backends = [[Noting(each, name) for each in servers] for name, servers in zip("ab", scripts, strict=False)]
    bench = Bench(*backends, resilience={"hedge": hedge, "hedge_share": 0.5})
    flat = [server for servers in backends for server in servers]

    async def main() -> list[Heard]:
        bench.open(retries=RETRIES, max_concurrent=places)
        for services in bench.services.values():
            for endpoint in services.endpoints:
                for _ in range(20):
                    endpoint.figures.began(50_000_000)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_ask(bench, patience_s)) for patience_s in callers]
        return [*(task.result() for task in tasks), await _ask(bench, None)]

    heard = run_virtual(main())
    for each in heard:
        _check(each, flat)
    assert bench.is_idle()
    sent = sum(len(server.gave) for server in flat)
    assert sent <= len(heard) * (len(backends) * (RETRIES + 1) + 1)
