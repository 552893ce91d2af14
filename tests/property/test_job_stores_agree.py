"""Whatever is asked of them, in whatever order, the stores in a file and in Redis give the same answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from indexers.errors import JobError
from indexers.jobs.state import (
    DocumentState,
    Failure,
    ItemLease,
    ItemOutcome,
    ItemState,
    JobKey,
    Run,
    RunClaim,
    RunRequest,
    RunState,
)
from indexers.jobs.store import JobStore
from tests.fakes.job_stores import LEASE_S, Clock, OpenStore, Queue, document, item, opened, redis_place, sqlite_place

_KEYS = (JobKey("acme", "one"), JobKey("acme", "two"), JobKey("other", "one"))
_WORKERS = ("w1", "w2")
_NAMES = [f"{number}" for number in range(6)]
_STEPS = 150
_ENDS = (RunState.SUCCEEDED, RunState.PARTIAL, RunState.FAILED, RunState.CANCELLED, RunState.WAITING)

Ask: TypeAlias = Callable[["Side"], Awaitable[object]]


@pytest.fixture(scope="module")
def place() -> Iterator[OpenStore]:
    """Is a Redis server."""
    with redis_place() as found:
        yield found


class Side:
    """One of the stores, and what it gave out: runs, claims and leases in the order in which they came."""

    def __init__(self, store: JobStore, clock: Clock) -> None:
        self.store = store
        self.queue = Queue(store, clock)
        self.runs: list[str] = ["never"]
        self.claims: list[RunClaim] = []
        self.leases: list[ItemLease] = []

    async def answer(self, ask: Ask) -> object:
        """Returns what the store says, with run ids by their number, and errors by kind."""
        try:
            return self._known(await ask(self))
        except JobError as error:
            return type(error).__name__

    def _known(self, told: object) -> object:
        match told:
            case list():
                return [self._known(one) for one in told]
            case RunClaim():
                self.claims.append(told)
                return self._known(told.run), told.worker, told.fence
            case Run() | Failure() | ItemLease():
                if told.run_id not in self.runs:
                    self.runs.append(told.run_id)
                return replace(told, run_id=str(self.runs.index(told.run_id)))
        return told


class Steps:
    """Random questions and changes; each is put to both stores."""

    def __init__(self, sides: tuple[Side, Side], clock: Clock, random: Random) -> None:
        self._sides = sides
        self._clock = clock
        self._random = random

    async def step(self) -> None:
        """Puts one question to both and compares the answers."""
        self._clock.pass_s(self._random.choice((0.0, 0.5, 1.0, LEASE_S / 3)))
        name, ask = self._random.choice((self._of_jobs, self._of_runs, self._of_items, self._of_items))()
        first, second = [await side.answer(ask) for side in self._sides]
        assert first == second, name

    async def compare(self) -> None:
        """Compares all that can be read."""
        await self._same("jobs", lambda side: side.store.list_jobs())
        await self._same("runs", lambda side: side.store.list_runs(""))
        await self._same("holders", lambda side: side.store.holders())
        await self._same("failures", _failures)
        await self._same("documents", _documents)
        await self._same("due", _due)

    async def _same(self, name: str, ask: Ask) -> None:
        first, second = [await side.answer(ask) for side in self._sides]
        assert first == second, name

    def _of_jobs(self) -> tuple[str, Ask]:
        key, name = self._random.choice(_KEYS), self._random.choice(("watermark", "cursor"))
        value = self._random.choice((b"", b"1", b"\x00\xff"))
        request = RunRequest(only_failures=self._random.random() < 0.4)
        keep = self._random.randint(1, 3)
        return self._weighed(
            (6, "submit", lambda side: side.store.submit(key, request)),
            (1, "declare", lambda side: side.queue.declare(key)),
            (1, "remember", lambda side: side.store.remember(key, name, value)),
            (1, "recall", lambda side: side.store.recall(key, ["watermark", "cursor"])),
            (1, "prune", lambda side: side.store.prune(key, keep)),
            (0.3, "remove", lambda side: side.store.remove_job(key)),
        )

    def _of_runs(self) -> tuple[str, Ask]:
        worker, tenant = self._random.choice(_WORKERS), self._random.choice(("", "acme", "other"))
        died, state = self._random.random() < 0.5, self._random.choice(_ENDS)
        run, claim = self._newest(self._sides[0].runs), self._newest(self._sides[0].claims)
        choices: list[tuple[float, str, Ask]] = [
            (4, "claim", lambda side: side.store.claim_run(worker, LEASE_S, tenant)),
            (0.5, "cancel", lambda side: side.store.cancel_run("acme", side.runs[run])),
            (1, "run", lambda side: side.store.get_run("acme", side.runs[run])),
            (0.7, "release", lambda side: side.store.release(worker, died=died)),
            (1, "page", lambda side: side.store.list_runs(tenant, "one", 2, side.runs[run])),
        ]
        if claim >= 0:
            choices += [
                (2, "renew", lambda side: side.store.renew_run(side.claims[claim], LEASE_S)),
                (0.5, "scanned", lambda side: side.store.mark_scanned(side.claims[claim])),
                (1.5, "end", lambda side: side.store.end_run(side.claims[claim], state, "why", "report")),
            ]
        return self._weighed(*choices)

    def _of_items(self) -> tuple[str, Ask]:
        worker, limit = self._random.choice(_WORKERS), self._random.randint(1, 4)
        run, claim, lease = (
            self._newest(one) for one in (self._sides[0].runs, self._sides[0].claims, self._sides[0].leases)
        )
        names, failed = self._random.sample(_NAMES, 3), self._outcome((ItemState.FAILED, ItemState.SKIPPED))
        choices: list[tuple[float, str, Ask]] = [(3, "lease", lambda side: _lease(side, run, worker, limit))]
        if claim >= 0:
            choices += [
                (3, "offer", lambda side: side.store.offer(side.claims[claim], [item(name) for name in names])),
                (1, "unlisted", lambda side: _fail_scanned(side, claim, names[0], failed)),
            ]
        if lease >= 0:
            outcome = self._outcome(tuple(state for state in ItemState if state is not ItemState.LEASED))
            states = [self._random.choice(list(DocumentState)) for _ in range(3)]
            choices += [
                (1, "keep", lambda side: _renew(side, side.leases[max(0, lease - 2) : lease + 1])),
                (3, "settle", lambda side: _settle(side, lease, outcome)),
                (4, "record", lambda side: _record(side, lease, states)),
            ]
        return self._weighed(*choices)

    def _outcome(self, states: tuple[ItemState, ...]) -> ItemOutcome:
        state = self._random.choice(states)
        return ItemOutcome(state, "why", "kind" if state is ItemState.FAILED else "", self._random.choice((0.0, 5.0)))

    def _newest(self, given: list[str] | list[RunClaim] | list[ItemLease]) -> int:
        """Returns the number of one of the newest; -1 when there are none."""
        return len(given) - 1 - min(self._random.choice((0, 0, 0, 1, 2, 5)), max(0, len(given) - 1))

    def _weighed(self, *choices: tuple[float, str, Ask]) -> tuple[str, Ask]:
        [(_, name, ask)] = self._random.choices(choices, [weight for weight, _, _ in choices])
        return name, ask


async def _failures(side: Side) -> object:
    return [await side.store.failures(key) for key in _KEYS]


async def _documents(side: Side) -> object:
    return [await side.store.documents(run_id) for run_id in side.runs]


async def _due(side: Side) -> object:
    return [await side.store.next_due_s(run_id) for run_id in side.runs]


async def _lease(side: Side, run: int, worker: str, limit: int) -> object:
    leases = await side.store.lease_items(side.runs[run], worker, limit, LEASE_S, attempts=3)
    side.leases += leases
    return leases


async def _fail_scanned(side: Side, claim: int, name: str, outcome: ItemOutcome) -> None:
    await side.store.fail_scanned(side.claims[claim], item(name).uri, name, outcome)


async def _renew(side: Side, leases: list[ItemLease]) -> object:
    return await side.store.renew_items(leases, LEASE_S)


async def _settle(side: Side, lease: int, outcome: ItemOutcome) -> object:
    return await side.store.settle([(side.leases[lease], outcome)])


async def _record(side: Side, lease: int, states: list[DocumentState]) -> object:
    one = side.leases[lease]
    records = [
        document(f"{one.name}#{number % 2}", one.uri, state, kind="row" if state is DocumentState.FAILED else "")
        for number, state in enumerate(states)
    ]
    await side.store.record(one.run_id, one.worker, records)
    return sorted(await side.store.seen(one.run_id, [record.document_id for record in records]))


@pytest.mark.parametrize("seed", range(12))
async def test_stores_give_the_same_answers(place: OpenStore, tmp_path: Path, seed: int) -> None:
    """Jobs, runs, leases, documents and failures of two tenants are the same in both after each of random steps."""
    clock = Clock()
    with sqlite_place() as file_place:
        async with opened(file_place(tmp_path, clock)) as file, opened(place(tmp_path, clock)) as redis:
            steps = Steps((Side(file, clock), Side(redis, clock)), clock, Random(seed))
            for side in (file, redis):
                for key in _KEYS:
                    await Queue(side, clock).declare(key)
            for number in range(_STEPS):
                await steps.step()
                if number % 3 == 0:
                    await steps.compare()
