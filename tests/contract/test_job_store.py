"""What every job store must do, tried on a file, on a Redis server and on a Redis cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from indexers.errors import JobError, JobNotFound, JobStoreUnavailable, LeaseLost, RunActive, RunNotFound
from indexers.jobs.state import (
    DocumentState,
    ItemOutcome,
    ItemState,
    JobKey,
    RunRequest,
    RunState,
)
from indexers.sources.source import ItemRef
from tests.fakes.job_stores import KEY, LEASE_S, PLACES, Clock, OpenStore, Queue, document, item, opened

DONE = ItemOutcome(ItemState.DONE)
BROKEN = ItemOutcome(ItemState.FAILED, "cannot be read", "unreadable")
A, B, C = (item(name).uri for name in "abc")


@pytest.fixture(scope="module", params=sorted(PLACES))
def place(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    """Is where stores are."""
    with PLACES[request.param]() as found:
        yield found


@pytest.fixture
async def queue(place: OpenStore, tmp_path: Path) -> AsyncIterator[Queue]:
    """Is an empty store with one job."""
    clock = Clock()
    async with opened(place(tmp_path, clock)) as store:
        found = Queue(store, clock)
        await found.declare()
        yield found


async def test_store_keeps_jobs_as_declared_last(queue: Queue) -> None:
    """A job comes back whole, is declared anew in place, and is listed by name for its tenant or for all."""
    job = await queue.store.get_job(KEY)
    assert (job.key, job.base_folder, job.paused, job.spec.name) == (KEY, "/base", False, "handbook")
    await queue.store.put_job(replace(job, paused=True))
    other = await queue.declare(JobKey("{b}/c", "archive"))
    assert await queue.store.list_jobs("acme") == [replace(job, paused=True)]
    assert {one.key for one in await queue.store.list_jobs()} == {KEY, other.key}
    assert await queue.store.list_jobs("nobody") == []
    with pytest.raises(JobNotFound):
        await queue.store.get_job(JobKey("nobody", KEY.name))


async def test_store_gives_runs_to_their_tenant_alone(queue: Queue) -> None:
    """Another tenant's run is told apart from none by nothing. TEN-03."""
    run = await queue.store.submit(KEY, RunRequest(reason="a person"))
    assert await queue.store.get_run("acme", run.run_id) == run
    for tenant, run_id in (("other", run.run_id), ("acme", "never")):
        with pytest.raises(RunNotFound) as refused:
            await queue.store.get_run(tenant, run_id)
        assert str(refused.value) == str(RunNotFound(run_id))
        with pytest.raises(RunNotFound):
            await queue.store.cancel_run(tenant, run_id)
    assert (await queue.store.get_run("acme", run.run_id)).state is RunState.QUEUED


async def test_store_queues_one_run_of_a_job_at_a_time(queue: Queue) -> None:
    """A second run is refused until the first has ended, and the job cannot be removed till then."""
    run = await queue.store.submit(KEY, RunRequest(allow_shrink=True, reason="schedule"))
    assert (run.state, run.key, run.request.allow_shrink, run.scanned) == (RunState.QUEUED, KEY, True, False)
    assert run.created_at.timestamp() == queue.clock.now
    with pytest.raises(RunActive) as active:
        await queue.store.submit(KEY, RunRequest())
    assert active.value.run_id == run.run_id
    with pytest.raises(RunActive):
        await queue.store.remove_job(KEY)
    with pytest.raises(JobNotFound):
        await queue.store.submit(JobKey("acme", "none"), RunRequest())
    await queue.store.cancel_run("acme", run.run_id)
    assert (await queue.store.submit(KEY, RunRequest())).run_id > run.run_id


async def test_store_lists_runs_newest_first(queue: Queue) -> None:
    """Pages go on before the last id of the page before, over one job or all, also when all came in one moment."""
    await queue.declare(JobKey("acme", "other"))
    ids = []
    for key in (KEY, JobKey("acme", "other")) * 3:
        run = await queue.store.submit(key, RunRequest())
        await queue.store.cancel_run("acme", run.run_id)
        ids.append(run.run_id)
    assert ids == sorted(ids)
    newest = [run.run_id for run in await queue.store.list_runs("acme")]
    assert newest == ids[::-1]
    assert [run.run_id for run in await queue.store.list_runs("", limit=2, before=newest[1])] == newest[2:4]
    assert [run.run_id for run in await queue.store.list_runs("acme", "other", limit=2)] == [ids[5], ids[3]]
    assert await queue.store.list_runs("nobody") == []


async def test_store_gives_a_run_to_one_worker(queue: Queue) -> None:
    """The oldest is claimed; nobody else gets it until the claim lapses, and then the first worker has lost it."""
    await queue.declare(JobKey("zeta", "other"))
    first = await queue.store.submit(KEY, RunRequest())
    second = await queue.store.submit(JobKey("zeta", "other"), RunRequest())
    claim = await queue.store.claim_run("w1", LEASE_S)
    assert claim is not None
    assert (claim.run.run_id, claim.run.state, claim.run.worker) == (first.run_id, RunState.RUNNING, "w1")
    assert await queue.store.claim_run("w2", LEASE_S, "acme") is None
    assert await queue.store.claim_run("w2", LEASE_S, run_id=first.run_id) is None
    other = await queue.store.claim_run("w2", LEASE_S)
    assert other is not None
    assert other.run.run_id == second.run_id
    queue.clock.pass_s(LEASE_S - 1)
    await queue.store.renew_run(claim, LEASE_S)
    queue.clock.pass_s(LEASE_S - 1)
    assert await queue.store.claim_run("w2", LEASE_S, "acme") is None
    queue.clock.pass_s(2)
    again = await queue.store.claim_run("w2", LEASE_S, "acme")
    assert again is not None
    assert again.fence > claim.fence
    assert again.run.started_at == claim.run.started_at
    for call in (
        queue.store.renew_run(claim, LEASE_S),
        queue.store.mark_scanned(claim),
        queue.store.offer(claim, [item("a")]),
        queue.store.fail_scanned(claim, A, "a", BROKEN),
        queue.store.end_run(claim, RunState.SUCCEEDED, "", ""),
    ):
        with pytest.raises(LeaseLost):
            await call
    assert (await queue.run(again)).items == {}


async def test_store_ends_runs_once(queue: Queue) -> None:
    """An ended run keeps its state, reason and report; what was left of its queue is dropped from the counts."""
    claim = await queue.start("abc")
    await queue.store.mark_scanned(claim)
    [lease] = await queue.store.lease_items(claim.run.run_id, "w1", 1, LEASE_S)
    await queue.store.settle([(lease, DONE)])
    [held] = await queue.store.lease_items(claim.run.run_id, "w1", 1, LEASE_S)
    run = await queue.store.end_run(claim, RunState.FAILED, "the source is gone", '{"a": 1}')
    assert (run.state, run.reason, run.report, run.scanned) == (
        RunState.FAILED,
        "the source is gone",
        '{"a": 1}',
        True,
    )
    assert run.ended_at is not None
    assert run.items == {ItemState.DONE: 1}
    assert run == await queue.run(claim)
    assert await queue.store.lease_items(run.run_id, "w1", 9, LEASE_S) == []
    assert await queue.store.settle([(held, DONE)]) == [held]
    assert await queue.store.renew_items([held], LEASE_S) == []
    assert await queue.store.next_due_s(run.run_id) is None
    assert await queue.store.failed_items(run.run_id) == []
    with pytest.raises(LeaseLost):
        await queue.store.end_run(claim, RunState.SUCCEEDED, "", "")
    assert await queue.store.cancel_run("acme", run.run_id) == run
    assert await queue.store.holders() == set()


async def test_store_cancels_queued_runs_at_once_and_asks_running_ones(queue: Queue) -> None:
    """A running run hears of the wish with its next renewal; a waiting one ends. JOB-09."""
    queued = await queue.store.submit(KEY, RunRequest())
    assert (await queue.store.cancel_run("acme", queued.run_id)).state is RunState.CANCELLED
    assert await queue.store.claim_run("w1", LEASE_S) is None
    claim = await queue.start()
    asked = await queue.store.cancel_run("acme", claim.run.run_id)
    assert (asked.state, asked.cancel_requested) == (RunState.RUNNING, True)
    assert (await queue.store.renew_run(claim, LEASE_S)).cancel_requested
    await queue.store.end_run(claim, RunState.WAITING, "much would be deleted", "report")
    ended = await queue.store.cancel_run("acme", claim.run.run_id)
    assert (ended.state, ended.report) == (RunState.CANCELLED, "report")


async def test_store_queues_an_item_once(queue: Queue) -> None:
    """What was offered before stays as it is, in whatever state; order is that of the first offer."""
    claim = await queue.start("abc")
    [first] = await queue.store.lease_items(claim.run.run_id, "w1", 1, LEASE_S)
    await queue.store.settle([(first, DONE)])
    await queue.store.offer(claim, [replace(item(name), fingerprint="other") for name in "cbad"])
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    assert [one.name for one in leases] == ["b", "c", "d"]
    assert [one.fingerprint for one in leases] == ["print of b", "print of c", "other"]
    assert (first.key, first.size_bytes, first.attempt, first.worker) == (KEY, 1, 1, "w1")
    assert (await queue.run(claim)).items == {ItemState.DONE: 1, ItemState.LEASED: 3}


async def test_store_leases_an_item_to_one_worker_until_it_lapses(queue: Queue) -> None:
    """A lapsed lease goes to another with a higher fence; whoever had it before changes nothing any more. VEC-15."""
    claim = await queue.start("ab")
    run_id = claim.run.run_id
    old = await queue.store.lease_items(run_id, "w1", 9, LEASE_S)
    assert await queue.store.lease_items(run_id, "w2", 9, LEASE_S) == []
    queue.clock.pass_s(LEASE_S - 1)
    assert await queue.store.renew_items(old, LEASE_S) == old
    queue.clock.pass_s(LEASE_S)
    new = await queue.store.lease_items(run_id, "w2", 1, LEASE_S)
    assert [(one.uri, one.attempt) for one in new] == [(A, 2)]
    assert new[0].fence > old[0].fence
    assert await queue.store.renew_items(old, LEASE_S) == [old[1]]
    await queue.store.record(run_id, "w1", [document("a", A, DocumentState.FAILED, kind="slow"), document("b", B)])
    assert await queue.store.settle([(old[0], BROKEN), (old[1], DONE)]) == [old[0]]
    assert await queue.store.settle([(old[1], DONE)]) == [old[1]]
    run = await queue.run(claim)
    assert run.items == {ItemState.LEASED: 1, ItemState.DONE: 1}
    assert (run.documents, run.failures) == ({DocumentState.VERIFIED: 1}, {})
    assert await queue.store.failures(KEY) == []
    assert await queue.store.settle([(new[0], DONE)]) == []


async def test_store_gives_up_items_that_kill_workers(queue: Queue) -> None:
    """An item whose last allowed attempt lapses has failed, whatever else is leased at the time."""
    claim = await queue.start("ab")
    run_id = claim.run.run_id
    for attempt in (1, 2):
        [lease] = await queue.store.lease_items(run_id, f"w{attempt}", 1, LEASE_S, attempts=2)
        assert (lease.uri, lease.attempt) == (A, attempt)
        queue.clock.pass_s(LEASE_S)
    [lease] = await queue.store.lease_items(run_id, "w3", 1, LEASE_S, attempts=2)
    assert lease.uri == B
    run = await queue.run(claim)
    assert (run.items, run.failures) == ({ItemState.FAILED: 1, ItemState.LEASED: 1}, {"worker_died": 1})
    [letter] = await queue.store.failures(KEY)
    assert (letter.item_uri, letter.document_id, letter.kind, letter.attempt) == (A, "", "worker_died", 2)
    assert await queue.store.failed_items(run_id) == [A, B]
    assert await queue.store.holders() == {"w1", "w3"}


async def test_store_tries_items_again_when_they_are_due(queue: Queue) -> None:
    """What is to be tried later waits that long; the oldest due one goes first."""
    claim = await queue.start("abc")
    run_id = claim.run.run_id
    assert await queue.store.next_due_s(run_id) == 0.0
    leases = await queue.store.lease_items(run_id, "w1", 3, LEASE_S)
    assert await queue.store.next_due_s(run_id) == pytest.approx(LEASE_S)
    later = [ItemOutcome(ItemState.QUEUED, "busy", "busy", retry_in_s=wait_s) for wait_s in (8.0, 4.0, 0.0)]
    assert await queue.store.settle(list(zip(leases, later, strict=True))) == []
    assert await queue.store.next_due_s(run_id) == 0.0
    assert [one.name for one in await queue.store.lease_items(run_id, "w1", 3, LEASE_S)] == ["c"]
    assert await queue.store.next_due_s(run_id) == pytest.approx(4.0)
    queue.clock.pass_s(4.0)
    assert [(one.name, one.attempt) for one in await queue.store.lease_items(run_id, "w1", 1, LEASE_S)] == [("b", 2)]
    queue.clock.pass_s(LEASE_S)
    assert [one.name for one in await queue.store.lease_items(run_id, "w2", 2, LEASE_S)] == ["a", "b"]


async def test_store_takes_back_what_a_worker_holds(queue: Queue) -> None:
    """A worker that ends gives all back at once, and its attempts do not count; those of one that died do."""
    claim = await queue.start("ab")
    run_id = claim.run.run_id
    leases = await queue.store.lease_items(run_id, "w1", 1, LEASE_S, attempts=2)
    await queue.store.lease_items(run_id, "w2", 1, LEASE_S)
    assert await queue.store.holders() == {"w1", "w2"}
    await queue.store.release("w1")
    assert await queue.store.holders() == {"w2"}
    assert await queue.store.settle([(leases[0], DONE)]) == leases
    for attempt in (1, 2):
        assert (await queue.store.claim_run("w3", LEASE_S)) is not None
        [lease] = await queue.store.lease_items(run_id, "w3", 1, LEASE_S, attempts=2)
        assert (lease.uri, lease.attempt) == (A, attempt)
        await queue.store.release("w3", died=True)
    run = await queue.run(claim)
    assert (run.items, run.failures) == ({ItemState.FAILED: 1, ItemState.LEASED: 1}, {"worker_died": 1})
    assert await queue.store.lease_items(run_id, "w3", 9, LEASE_S) == []


async def test_store_notes_what_the_scan_could_not_list(queue: Queue) -> None:
    """What cannot be listed failed, what is left out is skipped; once, however often the scan comes by. JOB-07."""
    claim = await queue.start("a")
    for _ in range(2):
        await queue.store.fail_scanned(claim, "file:///locked/", "locked/", BROKEN)
        await queue.store.fail_scanned(claim, B, "b", ItemOutcome(ItemState.SKIPPED, "too small", "skipped"))
    run = await queue.run(claim)
    assert run.items == {ItemState.QUEUED: 1, ItemState.FAILED: 1, ItemState.SKIPPED: 1}
    assert run.failures == {"unreadable": 1}
    assert await queue.store.failed_items(run.run_id) == [A, "file:///locked/"]
    [letter] = await queue.store.failures(KEY)
    assert (letter.name, letter.reason, letter.run_id) == ("locked/", "cannot be read", run.run_id)
    assert letter.failed_at.timestamp() == queue.clock.now


async def test_store_counts_each_document_once_with_its_last_state(queue: Queue) -> None:
    """Counts follow the last state; recording again changes nothing."""
    claim = await queue.start("a")
    run_id = claim.run.run_id
    await queue.store.lease_items(run_id, "w1", 1, LEASE_S)
    for state in (DocumentState.PARSED, DocumentState.WRITTEN, DocumentState.VERIFIED, DocumentState.VERIFIED):
        await queue.store.record(run_id, "w1", [document("one", A, state), document("two", A, DocumentState.PARSED)])
    broken = document("two", A, DocumentState.FAILED, kind="too_large")
    await queue.store.record(run_id, "w1", [broken, broken])
    run = await queue.run(claim)
    assert run.documents == {DocumentState.VERIFIED: 1, DocumentState.FAILED: 1}
    assert (run.chunks, run.tokens, run.failures) == (2, 100, {"too_large": 1})
    await queue.store.record(run_id, "w1", [document("two", A, counts=(3, 7))])
    run = await queue.run(claim)
    assert (run.documents, run.chunks, run.tokens, run.failures) == ({DocumentState.VERIFIED: 2}, 5, 107, {})


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        (DocumentState.VERIFIED, DocumentState.UNCHANGED, DocumentState.VERIFIED),
        (DocumentState.VERIFIED, DocumentState.SKIPPED, DocumentState.VERIFIED),
        (DocumentState.VERIFIED, DocumentState.PARSED, DocumentState.VERIFIED),
        (DocumentState.VERIFIED, DocumentState.WRITTEN, DocumentState.WRITTEN),
        (DocumentState.WRITTEN, DocumentState.PARSED, DocumentState.WRITTEN),
        (DocumentState.WRITTEN, DocumentState.EMBEDDED, DocumentState.WRITTEN),
        (DocumentState.WRITTEN, DocumentState.UNCHANGED, DocumentState.VERIFIED),
        (DocumentState.WRITTEN, DocumentState.SKIPPED, DocumentState.SKIPPED),
        (DocumentState.UNCHANGED, DocumentState.SKIPPED, DocumentState.SKIPPED),
        (DocumentState.VERIFIED, DocumentState.DELETING, DocumentState.DELETING),
    ],
)
async def test_store_takes_nothing_from_a_document_that_comes_by_twice(
    queue: Queue, before: DocumentState, after: DocumentState, left: DocumentState
) -> None:
    """What a run has written stays counted as written, when a delivery that is repeated finds it stored."""
    claim = await queue.start("a")
    run_id = claim.run.run_id
    await queue.store.lease_items(run_id, "w1", 1, LEASE_S)
    await queue.store.record(run_id, "w1", [document("one", A, before)])
    await queue.store.record(run_id, "w1", [document("one", A, after)])
    run = await queue.run(claim)
    assert run.documents == {left: 1}
    written = left in (DocumentState.WRITTEN, DocumentState.VERIFIED)
    assert (run.chunks, run.tokens) == ((2, 100) if written else (0, 0))
    assert [one.state for one in await queue.store.documents(run_id)] == [left]


async def test_store_keeps_what_a_worker_wrote_when_its_item_is_delivered_again(queue: Queue) -> None:
    """A worker dies between write and proof; the next one parses the document and finds it stored."""
    claim = await queue.start("a")
    run_id = claim.run.run_id
    await queue.store.lease_items(run_id, "w1", 1, LEASE_S)
    await queue.store.record(run_id, "w1", [document("one", A, DocumentState.WRITTEN)])
    queue.clock.pass_s(LEASE_S)
    await queue.store.lease_items(run_id, "w2", 1, LEASE_S)
    for state in (DocumentState.PARSED, DocumentState.UNCHANGED):
        await queue.store.record(run_id, "w2", [document("one", A, state)])
    run = await queue.run(claim)
    assert (run.documents, run.chunks, run.tokens) == ({DocumentState.VERIFIED: 1}, 2, 100)


async def test_store_tells_which_documents_came_by(queue: Queue) -> None:
    """Whatever its state, a document came by, unless it is deleted; the coordinator records those without an item."""
    claim = await queue.start("a")
    run_id = claim.run.run_id
    await queue.store.lease_items(run_id, "w1", 1, LEASE_S)
    await queue.store.record(run_id, "w1", [document("x", A, DocumentState.FAILED, kind="k"), document("y", A)])
    await queue.store.record(run_id, "w9", [document("z", "", DocumentState.DELETING), document("w", B)])
    assert await queue.store.seen(run_id, ["x", "y", "z", "w", "never"]) == {"x", "y"}
    assert await queue.store.seen(run_id, []) == set()
    assert (await queue.run(claim)).documents[DocumentState.DELETING] == 1
    await queue.store.record(run_id, "w9", [document("z", "", DocumentState.DELETED)])
    assert await queue.store.seen(run_id, ["z"]) == set()


async def test_store_lists_documents_by_id(queue: Queue) -> None:
    """Pages hold all documents or those of some states, whole, in the order of bytes."""
    claim = await queue.start("a")
    run_id = claim.run.run_id
    await queue.store.lease_items(run_id, "w1", 1, LEASE_S)
    names = ["B", "a", "b", "ä", "a b", "z" * 500, "日本"]
    states = [DocumentState.VERIFIED, DocumentState.FAILED]
    records = [
        replace(document(name, A, states[number % 2], kind="odd" if number % 2 else ""), warnings=("cut", "äöü"))
        for number, name in enumerate(names)
    ]
    await queue.store.record(run_id, "w1", records)
    found, after = [], ""
    while page := await queue.store.documents(run_id, after=after, limit=3):
        found += page
        after = page[-1].document_id
    assert found == sorted(records, key=lambda one: one.document_id)
    failed = await queue.store.documents(run_id, [DocumentState.FAILED], limit=2)
    assert [one.document_id for one in failed] == ["a", "z" * 500]
    assert await queue.store.documents(run_id, [DocumentState.DELETED]) == []


async def test_store_keeps_failures_until_they_succeed(queue: Queue) -> None:
    """Dead letters outlive their run, until they succeed in a later one, or are not in a whole one."""
    claim = await queue.start("abc")
    run_id = claim.run.run_id
    leases = await queue.store.lease_items(run_id, "w1", 9, LEASE_S)
    failed = [document(name, B, DocumentState.FAILED, kind="row") for name in ("b#1", "b#2")]
    await queue.store.record(run_id, "w1", failed)
    await queue.store.settle([(leases[0], BROKEN), (leases[1], DONE), (leases[2], BROKEN)])
    await queue.store.end_run(claim, RunState.PARTIAL, "", "")
    listed = await queue.store.failures(KEY)
    assert [(one.item_uri, one.document_id) for one in listed] == [(A, ""), (B, "b#1"), (B, "b#2"), (C, "")]
    assert [one.item_uri for one in await queue.store.failures(KEY, after=A, limit=2)] == [B, B]
    assert [one.item_uri for one in await queue.store.failures(KEY, after=B)] == [C]
    claim = await queue.start("ab")
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    await queue.store.record(claim.run.run_id, "w1", [document("b#1", B, DocumentState.UNCHANGED), failed[1]])
    await queue.store.settle([(leases[0], DONE), (leases[1], DONE)])
    assert [one.document_id or one.item_uri for one in await queue.store.failures(KEY)] == ["b#2", C]
    await queue.store.end_run(claim, RunState.PARTIAL, "", "")
    [left] = await queue.store.failures(KEY)
    assert (left.document_id, left.run_id, left.attempt) == ("b#2", claim.run.run_id, 1)


@pytest.mark.parametrize(
    ("states", "letters"),
    [
        ((DocumentState.FAILED, DocumentState.PARSED), ["old"]),
        ((DocumentState.UNCHANGED, DocumentState.PARSED), ["old"]),
        ((DocumentState.FAILED, DocumentState.VERIFIED), []),
        ((DocumentState.VERIFIED, DocumentState.FAILED), ["new"]),
    ],
)
async def test_store_takes_the_last_of_a_document_that_one_call_names_twice(
    queue: Queue, states: tuple[DocumentState, ...], letters: list[str]
) -> None:
    """Only the last state in a call counts, for the dead letter too: one of before is kept, replaced or forgotten."""
    claim = await queue.start("a")
    run_id = claim.run.run_id
    await queue.store.lease_items(run_id, "w1", 1, LEASE_S)
    await queue.store.record(run_id, "w1", [document("one", A, DocumentState.FAILED, kind="old")])
    kinds = ["new" if state is DocumentState.FAILED else "" for state in states]
    named = [document("one", A, state, kind=kind) for state, kind in zip(states, kinds, strict=True)]
    await queue.store.record(run_id, "w1", named)
    assert (await queue.run(claim)).documents == {states[-1]: 1}
    assert [one.kind for one in await queue.store.failures(KEY)] == letters


async def test_store_queues_the_failures_alone_when_asked_to(queue: Queue) -> None:
    """Such a run needs no scan: each item with a dead letter is queued once, as it was listed."""
    with pytest.raises(JobError, match="no failures that could be tried again"):
        await queue.store.submit(KEY, RunRequest(only_failures=True))
    claim = await queue.start("abc")
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    await queue.store.fail_scanned(claim, "file:///locked/", "locked/", BROKEN)
    failed = [document(name, B, DocumentState.FAILED, kind="row") for name in ("b#1", "b#2")]
    await queue.store.record(claim.run.run_id, "w1", failed)
    await queue.store.settle([(leases[0], BROKEN), (leases[1], DONE), (leases[2], DONE)])
    await queue.store.end_run(claim, RunState.PARTIAL, "", "")
    claim = await queue.start(request=RunRequest(only_failures=True))
    assert claim.run.scanned
    assert claim.run.items == {ItemState.QUEUED: 2}
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    assert [(one.uri, one.name, one.fingerprint, one.size_bytes, one.attempt) for one in leases] == [
        (A, "a", "print of a", 1, 1),
        (B, "b", "print of b", 1, 1),
    ]
    await queue.store.record(claim.run.run_id, "w1", [document("b#1", B), document("b#2", B)])
    await queue.store.settle([(leases[0], BROKEN), (leases[1], DONE)])
    await queue.store.end_run(claim, RunState.PARTIAL, "", "")
    assert [one.item_uri for one in await queue.store.failures(KEY)] == [A, "file:///locked/"]


async def test_store_queues_failed_pages_whose_address_ends_with_a_slash(queue: Queue) -> None:
    """A page is no folder, though its address ends like one; a root that could not be listed has no name."""
    claim = await queue.start()
    await queue.store.offer(claim, [ItemRef("https://site/docs/", "docs/index.html", "tag", 5)])
    await queue.store.fail_scanned(claim, "file:///root/", "", BROKEN)
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    await queue.store.settle([(leases[0], BROKEN)])
    await queue.store.end_run(claim, RunState.FAILED, "", "")
    claim = await queue.start(request=RunRequest(only_failures=True))
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    assert [(one.uri, one.name) for one in leases] == [("https://site/docs/", "docs/index.html")]


async def test_store_remembers_values_of_a_job(queue: Queue) -> None:
    """Values are bytes under names; an empty one removes, another job sees nothing, and the job takes them along."""
    other = await queue.declare(JobKey("acme", "other"))
    await queue.store.remember(KEY, "watermark", bytes(range(256)))
    await queue.store.remember(KEY, "cursor", b"1")
    await queue.store.remember(KEY, "cursor", b"2")
    assert await queue.store.recall(KEY, ["watermark", "cursor", "never"]) == {
        "watermark": bytes(range(256)),
        "cursor": b"2",
    }
    assert await queue.store.recall(other.key, ["cursor"]) == {}
    await queue.store.remember(KEY, "cursor", b"")
    assert await queue.store.recall(KEY, ["cursor"]) == {}
    assert await queue.store.recall(KEY, []) == {}
    await queue.store.remove_job(KEY)
    await queue.declare()
    assert await queue.store.recall(KEY, ["watermark"]) == {}


async def test_store_forgets_rows_of_old_runs(queue: Queue) -> None:
    """Old runs keep their counts and dead letters, and lose items and documents."""
    runs = []
    for _ in range(3):
        claim = await queue.start("ab")
        leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
        await queue.store.record(claim.run.run_id, "w1", [document("a", A)])
        await queue.store.settle([(leases[0], DONE), (leases[1], BROKEN)])
        runs.append(await queue.store.end_run(claim, RunState.PARTIAL, "", "report"))
    await queue.store.prune(KEY, 1)
    assert await queue.store.list_runs("acme") == runs[::-1]
    assert await queue.store.documents(runs[1].run_id) == []
    assert await queue.store.failed_items(runs[1].run_id) == []
    assert [one.document_id for one in await queue.store.documents(runs[2].run_id)] == ["a"]
    assert len(await queue.store.failures(KEY)) == 1


async def test_store_forgets_a_job_whole(queue: Queue) -> None:
    """A job that is removed takes its runs and dead letters along, and begins afresh when it is declared again."""
    claim = await queue.start("a")
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    await queue.store.settle([(leases[0], BROKEN)])
    await queue.store.end_run(claim, RunState.FAILED, "", "")
    await queue.store.remove_job(KEY)
    with pytest.raises(JobNotFound):
        await queue.store.remove_job(KEY)
    with pytest.raises(RunNotFound):
        await queue.run(claim)
    assert await queue.store.list_jobs() == []
    assert await queue.store.list_runs("") == []
    assert await queue.store.documents(claim.run.run_id) == []
    await queue.declare()
    assert await queue.store.failures(KEY) == []
    assert await queue.store.list_runs("acme") == []


async def test_store_bears_calls_about_runs_that_are_gone(queue: Queue) -> None:
    """A worker whose run was forgotten meanwhile finds nothing to do, and breaks nothing."""
    claim = await queue.start("a")
    [lease] = await queue.store.lease_items(claim.run.run_id, "w1", 1, LEASE_S)
    await queue.store.end_run(claim, RunState.CANCELLED, "", "")
    await queue.store.remove_job(KEY)
    run_id = claim.run.run_id
    for name in (run_id, "never"):
        await queue.store.record(name, "w1", [document("a", A)])
        assert await queue.store.lease_items(name, "w1", 9, LEASE_S) == []
        assert await queue.store.next_due_s(name) is None
        assert await queue.store.seen(name, ["a"]) == set()
        assert await queue.store.failed_items(name) == []
    assert await queue.store.settle([(lease, DONE)]) == [lease]
    assert await queue.store.renew_items([lease], LEASE_S) == []
    with pytest.raises(LeaseLost):
        await queue.store.renew_run(claim, LEASE_S)


async def test_store_is_shared(place: OpenStore, queue: Queue, tmp_path: Path) -> None:
    """Two stores at one place see the same; many workers at once get each item once."""
    claim = await queue.start([f"{number:03}" for number in range(200)])
    async with opened(place(tmp_path, queue.clock)) as other:
        assert (await other.get_run("acme", claim.run.run_id)).items == {ItemState.QUEUED: 200}
        stores = [queue.store, other] * 10
        leased = await asyncio.gather(
            *(store.lease_items(claim.run.run_id, f"w{n}", 10, LEASE_S) for n, store in enumerate(stores))
        )
    assert sorted(one.name for leases in leased for one in leases) == [f"{number:03}" for number in range(200)]


async def test_store_takes_large_batches(queue: Queue) -> None:
    """Thousands of items and documents in one call are no more trouble than few."""
    names = [f"{number:05}" for number in range(5_000)]
    claim = await queue.start(names)
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 5_000, LEASE_S)
    assert [one.name for one in leases] == names
    await queue.store.record(claim.run.run_id, "w1", [document(one.name, one.uri) for one in leases])
    assert await queue.store.settle([(one, DONE) for one in leases]) == []
    run = await queue.run(claim)
    assert (run.items, run.documents, run.chunks) == (
        {ItemState.DONE: 5_000},
        {DocumentState.VERIFIED: 5_000},
        10_000,
    )
    assert await queue.store.seen(run.run_id, names) == set(names)


async def test_store_says_when_it_is_closed(place: OpenStore, tmp_path: Path) -> None:
    """A closed store is unavailable; closing again does nothing."""
    store = place(tmp_path, Clock())
    await store.list_jobs()
    await store.close()
    await store.close()
    with pytest.raises(JobStoreUnavailable, match="closed"):
        await store.list_jobs()
