"""The job store in Redis when the server hangs, dies, comes back empty or moves, and behind TLS and Sentinels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from indexers.errors import JobStoreUnavailable, LeaseLost, RunNotFound
from indexers.jobs.state import DocumentState, ItemOutcome, ItemState, RunState
from retrieval.caching.redis.options import RedisOptions, options_from_url
from retrieval.errors import ConfigError
from retrieval.jobs.open import open_redis_job_store
from retrieval.jobs.redis.store import RedisJobStore
from retrieval.settings.caching import RedisSettings
from tests.contract.shared_places import Place, behind_sentinel, encrypted, reachable
from tests.fakes.job_rigs import rig_of
from tests.fakes.job_stores import KEY, LEASE_S, Clock, Queue, document, item, opened
from tests.fakes.redis_server import RedisServer

_DONE = ItemOutcome(ItemState.DONE)
_WAIT_S = 30.0


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """Is a server that the test may harm."""
    with RedisServer() as started:
        yield started


@pytest.fixture
async def queue(server: RedisServer) -> AsyncIterator[Queue]:
    """Is a store on it whose calls give up soon, with one job."""
    options = replace(options_from_url(server.url), connect_timeout_ms=1000.0)
    async with opened(RedisJobStore(options, Clock(), call_limit_s=1.0)) as store:
        found = Queue(store, Clock())
        await found.declare()
        yield found


async def _carried_out(queue: Queue) -> None:
    claim = await queue.start("ab")
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    await queue.store.record(claim.run.run_id, "w1", [document(one.name, one.uri) for one in leases])
    assert await queue.store.settle([(one, _DONE) for one in leases]) == []
    run = await queue.store.end_run(claim, RunState.SUCCEEDED, "", "{}")
    assert (run.documents, run.items) == ({DocumentState.VERIFIED: 2}, {ItemState.DONE: 2})


async def test_store_gives_up_on_a_server_that_hangs_and_uses_it_when_it_goes_on(
    server: RedisServer, queue: Queue
) -> None:
    """A hanging server costs each call its limit; when it goes on, no reply of before is taken for one of now."""
    claim = await queue.start("ab")
    server.suspend()
    try:
        async with asyncio.timeout(_WAIT_S):
            for call in (queue.store.get_job(KEY), queue.run(claim), queue.store.list_runs("acme")):
                with pytest.raises(JobStoreUnavailable, match="try again later"):
                    await call
    finally:
        server.resume()
    assert (await queue.run(claim)).items == {ItemState.QUEUED: 2}
    assert (await queue.store.get_job(KEY)).key == KEY
    leases = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    assert await queue.store.settle([(one, _DONE) for one in leases]) == []


async def test_store_bears_the_loss_of_all_that_the_server_held(server: RedisServer, queue: Queue) -> None:
    """A server that is killed and comes back empty has lost runs and jobs; workers hear so, and all begins anew."""
    claim = await queue.start("ab")
    [lease, _] = await queue.store.lease_items(claim.run.run_id, "w1", 9, LEASE_S)
    server.kill()
    with pytest.raises(JobStoreUnavailable):
        await queue.store.settle([(lease, _DONE)])
    server.start()
    with pytest.raises(LeaseLost):
        await queue.store.renew_run(claim, LEASE_S)
    assert await queue.store.settle([(lease, _DONE)]) == [lease]
    with pytest.raises(RunNotFound):
        await queue.run(claim)
    assert await queue.store.list_jobs() == []
    await queue.declare()
    await _carried_out(queue)


async def test_store_goes_on_after_a_restart_between_two_calls(server: RedisServer, queue: Queue) -> None:
    """Connections that a restart has cut cost no call, and scripts that the server has forgotten are sent again."""
    await _carried_out(queue)
    server.kill()
    server.start()
    await queue.declare()
    await _carried_out(queue)
    with server.client() as client:
        client.script_flush()
    await _carried_out(queue)


async def test_store_bears_more_callers_than_it_has_connections(server: RedisServer, queue: Queue) -> None:
    """Calls wait for a connection instead of failing."""
    claim = await queue.start([f"{number:03}" for number in range(100)])
    leases = await asyncio.gather(
        *(queue.store.lease_items(claim.run.run_id, f"w{number}", 1, LEASE_S) for number in range(100))
    )
    assert len({one.uri for found in leases for one in found}) == 100


async def test_store_says_that_a_full_server_refuses(server: RedisServer, queue: Queue) -> None:
    """A server that is out of memory makes the store unavailable in the server's own words, and changes nothing."""
    claim = await queue.start("a")
    with server.client() as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(JobStoreUnavailable, match="maxmemory"):
            await queue.store.offer(claim, [item("b")])
        client.config_set("maxmemory", "0")
    assert (await queue.run(claim)).items == {ItemState.QUEUED: 1}


async def test_leases_go_by_the_servers_clock(server: RedisServer) -> None:
    """Without a clock of a test, a lease lapses by the time of the server, which all machines share."""
    async with opened(RedisJobStore(options_from_url(server.url))) as store:
        queue = Queue(store, Clock())
        await queue.declare()
        claim = await queue.start("a", request=None)
        [first] = await store.lease_items(claim.run.run_id, "w1", 1, 0.001)
        async with asyncio.timeout(_WAIT_S):
            while not (again := await store.lease_items(claim.run.run_id, "w2", 1, LEASE_S)):
                pass
        assert again[0].fence > first.fence
        assert 0.0 < (await store.next_due_s(claim.run.run_id) or 0.0) <= LEASE_S


@pytest.mark.parametrize("place", [encrypted, behind_sentinel])
async def test_store_works_behind_tls_and_sentinels(
    place: Callable[[], AbstractContextManager[Place]], tmp_path: Path
) -> None:
    """A run goes its way from declaration to report."""
    with place() as found:
        async with (
            reachable(found, _patient(found.options), tmp_path) as options,
            opened(RedisJobStore(_patient(options), Clock())) as store,
        ):
            queue = Queue(store, Clock())
            await queue.declare()
            await _carried_out(queue)


def _patient(options: RedisOptions) -> RedisOptions:
    return replace(options, connect_timeout_ms=5000.0)


async def test_runs_are_carried_out_from_redis(server: RedisServer, tmp_path: Path) -> None:
    """A whole job works the same from Redis: added, unchanged, changed and gone documents, with right counts."""
    async with opened(RedisJobStore(options_from_url(server.url))) as store, rig_of(tmp_path, store=store) as rig:
        rig.source.files = {f"f{number}.txt": f"file {number}".encode() for number in range(8)}
        first = await rig.run()
        assert (first.state, first.documents) == (RunState.SUCCEEDED, {DocumentState.VERIFIED: 8})
        rig.source.files["f0.txt"] = b"changed"
        del rig.source.files["f1.txt"]
        second = await rig.run()
        assert second.documents == {
            DocumentState.VERIFIED: 1,
            DocumentState.UNCHANGED: 6,
            DocumentState.DELETED: 1,
        }
        assert set(await rig.stored()) == set(rig.source.files)


async def test_settings_open_the_store(server: RedisServer) -> None:
    """The store is where `cache.redis` says; without a server it is refused by the name of the setting."""
    async with opened(open_redis_job_store(RedisSettings(url=SecretStr(server.url)))) as store:
        assert await store.list_jobs() == []
    with pytest.raises(ConfigError, match=r"cache\.redis\.url"):
        open_redis_job_store(RedisSettings())
    with pytest.raises(ConfigError, match=r"cache\.redis\.url"):
        open_redis_job_store(RedisSettings(url=SecretStr("http://nowhere")))
