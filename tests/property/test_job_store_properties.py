"""Whatever workers do, lapse or lose: no item is lost or worked on by two, and counts are those of the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from indexers.jobs.state import DocumentState, ItemLease, ItemOutcome, ItemState, RunClaim
from tests.fakes.job_stores import (
    KEY,
    LEASE_S,
    Clock,
    OpenStore,
    Queue,
    document,
    item,
    opened,
    redis_place,
    sqlite_place,
)

_PLACES = {"sqlite": sqlite_place, "redis": redis_place}
_NAMES = [f"{number:02}" for number in range(12)]
_ATTEMPTS = 4
_WRITTEN = (DocumentState.WRITTEN, DocumentState.VERIFIED)
_ENDED = (ItemState.DONE, ItemState.SKIPPED, ItemState.FAILED)


@pytest.fixture(scope="module", params=sorted(_PLACES))
def place(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    """Is where stores are."""
    with _PLACES[request.param]() as found:
        yield found


class Steps:
    """Random steps of two workers, beside a model of who holds what until when."""

    def __init__(self, queue: Queue, claim: RunClaim, random: Random) -> None:
        self._queue = queue
        self._store = queue.store
        self._run_id = claim.run.run_id
        self._claim = claim
        self._random = random
        self._leases: dict[str, list[ItemLease]] = {"w1": [], "w2": []}  # that workers believe to hold
        self._held: dict[str, tuple[int, float]] = {}  # by URI: the fence that holds, and until when
        self._holders: dict[str, str] = {}  # by URI: who leased it last
        self._ended: dict[str, ItemState] = {}

    async def step(self) -> None:
        """Takes one step and checks what it may have changed."""
        worker = self._random.choice(("w1", "w2"))
        steps = (
            self._lease,
            self._lease,
            self._renew,
            self._record,
            self._record,
            self._settle,
            self._pass,
            self._offer,
        )
        if self._random.random() < 0.04:
            await self._release(worker)
        else:
            await self._random.choice(steps)(worker)
        await self._check()

    async def finish(self) -> None:
        """Works off what is left: every item comes to an end."""
        for _ in range(10 * len(_NAMES)):
            self._queue.clock.pass_s(2 * LEASE_S)
            self._leases["w1"] = []
            await self._lease("w1")
            await self._settle("w1")
            await self._check()
            if await self._store.next_due_s(self._run_id) is None:
                break
        assert set(self._ended) == {item(name).uri for name in _NAMES}

    async def _offer(self, worker: str) -> None:
        await self._store.offer(self._claim, [item(name) for name in self._random.sample(_NAMES, 4)])

    async def _pass(self, worker: str) -> None:
        self._queue.clock.pass_s(self._random.choice((1.0, LEASE_S / 2, LEASE_S)))

    async def _lease(self, worker: str) -> None:
        now, limit = self._queue.clock.now, self._random.randint(1, 4)
        leases = await self._store.lease_items(self._run_id, worker, limit, LEASE_S, attempts=_ATTEMPTS)
        assert len(leases) <= limit
        for lease in leases:
            fence, until = self._held.get(lease.uri, (0, 0.0))
            assert lease.uri not in self._ended, "an item that has ended was leased"
            assert lease.fence > fence, "a fence came twice"
            assert until <= now, "two workers hold an item"
            self._held[lease.uri] = (lease.fence, now + LEASE_S)
            self._holders[lease.uri] = worker
        self._leases[worker] += leases
        for uri in await self._store.failed_items(self._run_id):
            lapsed = uri in self._held and self._held[uri][1] <= now
            if lapsed and await self._is_dead(uri):
                self._ended[uri] = ItemState.FAILED

    async def _is_dead(self, uri: str) -> bool:
        return any(one.item_uri == uri and not one.document_id for one in await self._store.failures(KEY))

    async def _renew(self, worker: str) -> None:
        renewed = await self._store.renew_items(self._leases[worker], LEASE_S)
        assert renewed == [lease for lease in self._leases[worker] if self._holds(lease)]
        for lease in renewed:
            self._held[lease.uri] = (lease.fence, self._queue.clock.now + LEASE_S)

    async def _record(self, worker: str) -> None:
        states = list(DocumentState)
        records = []
        for lease in self._leases[worker]:
            state = self._random.choice(states)
            kind = "broken" if state is DocumentState.FAILED else ""
            counts = (self._random.randint(1, 5), self._random.randint(1, 500))
            name = f"{lease.name}#{self._random.randint(0, 2)}"
            records.append(document(name, lease.uri, state, counts, kind))
        before = {one.document_id: one for one in await self._store.documents(self._run_id)}
        await self._store.record(self._run_id, worker, records)
        after = {one.document_id: one for one in await self._store.documents(self._run_id)}
        theirs = {lease.uri for lease in self._leases[worker] if not self._may_record(lease, worker)}
        assert {name for name in before | after if before.get(name) != after.get(name)} <= {
            one.document_id for one in records if one.item_uri not in theirs
        }

    def _may_record(self, lease: ItemLease, worker: str) -> bool:
        return any(self._holds(one) for one in self._leases[worker] if one.uri == lease.uri)

    async def _settle(self, worker: str) -> None:
        chosen = self._random.sample(self._leases[worker], min(3, len(self._leases[worker])))
        settled = [(lease, self._outcome()) for lease in chosen]
        lost = await self._store.settle(settled)
        assert lost == [lease for lease in chosen if not self._holds(lease)]
        for lease, outcome in settled:
            self._leases[worker].remove(lease)
            if lease in lost:
                continue
            self._held[lease.uri] = (lease.fence, 0.0)
            if outcome.state in _ENDED:
                self._ended[lease.uri] = outcome.state

    def _outcome(self) -> ItemOutcome:
        state = self._random.choice((*_ENDED, ItemState.QUEUED))
        return ItemOutcome(state, "why", "kind" if state is ItemState.FAILED else "", self._random.choice((0.0, 5.0)))

    async def _release(self, worker: str) -> None:
        died = self._random.random() < 0.5
        await self._store.release(worker, died=died)
        for lease in self._leases[worker]:
            if self._holds(lease):
                self._held[lease.uri] = (lease.fence, 0.0)
                if died and lease.attempt >= _ATTEMPTS:
                    self._ended[lease.uri] = ItemState.FAILED
        self._leases[worker] = []

    def _holds(self, lease: ItemLease) -> bool:
        """Tells whether a lease holds: a lapsed one does until another worker takes the item."""
        fence, until = self._held[lease.uri]
        return lease.fence == fence and until > 0.0 and lease.uri not in self._ended

    async def _check(self) -> None:
        run = await self._store.get_run(KEY.tenant, self._run_id)
        documents = await self._store.documents(self._run_id)
        assert run.documents == dict(Counter(one.state for one in documents))
        written = [one for one in documents if one.state in _WRITTEN]
        assert (run.chunks, run.tokens) == (sum(o.chunk_count for o in written), sum(o.token_count for o in written))
        assert sum(run.items.values()) == len(_NAMES)
        assert {state: count for state, count in run.items.items() if state in _ENDED} == dict(
            Counter(self._ended.values())
        )
        held = {self._holders[uri] for uri, (_, until) in self._held.items() if until and uri not in self._ended}
        assert await self._store.holders() == held | {"coordinator"}
        failed = run.items.get(ItemState.FAILED, 0) + run.documents.get(DocumentState.FAILED, 0)
        assert sum(run.failures.values()) == failed


@pytest.mark.parametrize("seed", range(12))
async def test_store_neither_loses_nor_doubles_items(place: OpenStore, tmp_path: Path, seed: int) -> None:
    """Two workers lease, renew, record, settle, lapse and die at random; then all is worked off."""
    clock = Clock()
    async with opened(place(tmp_path, clock)) as store:
        queue = Queue(store, clock)
        await queue.declare()
        claim = await queue.start(_NAMES, "coordinator")
        steps = Steps(queue, claim, Random(seed))
        for _ in range(80):
            await steps.step()
        await steps.finish()
