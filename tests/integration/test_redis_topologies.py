"""What is particular to Sentinels and to a cluster: a failover, and a node that goes and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from redis.crc import key_slot

from retrieval.caching.redis.naming import redis_name
from retrieval.caching.redis.options import RedisOptions, options_from_url
from retrieval.caching.redis.tier import RedisTier, open_redis_tier
from tests.fakes.cache_keys import cache_key
from tests.fakes.redis_server import HOST, RedisServer, running_cluster, running_sentinel
from tests.fakes.tcp_proxy import running_proxy

SERVICE = "headrace"
TTL_S = 600.0
SLOTS = 16384
WAIT_S = 30.0
BUDGET_MS = 2000.0  # that a busy machine keeps


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Is a server without TLS."""
    with RedisServer() as running:
        yield running


@asynccontextmanager
async def _opened(options: RedisOptions) -> AsyncIterator[RedisTier]:
    tier = open_redis_tier(replace(options, budget_ms=BUDGET_MS))
    try:
        yield tier
    finally:
        await tier.close()


async def _holds(tier: RedisTier, name: object = 0) -> bool:
    """Puts a value and tells whether it is found."""
    tier.put(cache_key(name), b"value", TTL_S)
    await tier.flush()
    (found,) = (await tier.get_many([cache_key(name)])).values
    return found is not None and found.value == b"value"


async def _until_it_holds(tier: RedisTier) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await _holds(tier, "afterwards"):
            await tier.available_within(WAIT_S)


async def test_tier_follows_a_failover() -> None:
    """When the primary dies, look-ups are flagged misses until the Sentinel has named its successor, and go there."""
    with (
        RedisServer("--repl-diskless-sync-delay", "0") as primary,
        RedisServer("--replicaof", HOST, str(primary.port)) as replica,
    ):
        replica.wait_for_log("sync: Finished with success")
        with running_sentinel(primary.port, SERVICE) as sentinel:
            url = f"redis+sentinel://{HOST}:{sentinel.port}/{SERVICE}"
            async with _opened(options_from_url(url)) as tier:
                assert await tier.available_within(WAIT_S)
                assert await _holds(tier)
                sentinel.wait_for_log("+slave slave")
                primary.kill()
                assert not (await tier.get_many([cache_key(0)])).available
                await _until_it_holds(tier)
                with replica.client() as client:
                    assert client.dbsize() > 0
                    assert client.info("replication")["role"] == "master"


async def test_tier_is_unavailable_while_the_sentinel_knows_no_primary(server: RedisServer) -> None:
    """A service that the Sentinel does not know is no server, and neither is a Sentinel that is gone."""
    with running_sentinel(server.port, SERVICE) as sentinel:
        url = f"redis+sentinel://{HOST}:{sentinel.port}"
        async with _opened(options_from_url(f"{url}/other")) as tier:
            assert not await tier.available_within(0.2)
        async with _opened(options_from_url(f"{url}/{SERVICE}")) as tier:
            assert await tier.available_within(WAIT_S)
            sentinel.kill()
            assert await _holds(tier)
    async with _opened(options_from_url(f"{url}/{SERVICE}")) as tier:
        assert not await tier.available_within(0.2)


@pytest.mark.parametrize(
    "garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b":1\r\n", b"*1\r\n:1\r\n", b"*1\r\n*0\r\n", b"+OK\r\n"]
)
@pytest.mark.parametrize("kind", ["redis", "redis+sentinel", "redis+cluster"])
async def test_tier_outlives_garbage_while_it_looks_for_servers(server: RedisServer, kind: str, garbage: bytes) -> None:
    """Whoever answers nonsense is no server; the search goes on, whatever redis-py makes of it."""
    path = f"/{SERVICE}" if kind == "redis+sentinel" else ""
    async with running_proxy(server.port) as proxy:
        proxy.faults.garbage = garbage
        async with _opened(options_from_url(f"{kind}://{HOST}:{proxy.port}{path}")) as tier:
            assert not await tier.available_within(0.1)
            asked = proxy.connections
            async with asyncio.timeout(WAIT_S):
                while proxy.connections == asked:
                    assert not await tier.available_within(0.1)


async def test_tier_recovers_when_a_node_of_the_cluster_comes_back() -> None:
    """A look-up that needs a lost node is a flagged miss, not half an answer; with the node the tier is back."""
    with running_cluster() as nodes:
        url = f"redis+cluster://{HOST}:{nodes[0].port},{HOST}:{nodes[1].port}"
        async with _opened(options_from_url(url)) as tier:
            assert await tier.available_within(WAIT_S)
            keys = [cache_key(number) for number in range(50)]
            for number, key in enumerate(keys):
                tier.put(key, str(number).encode(), TTL_S)
            await tier.flush()
            nodes[0].kill()
            found = await tier.get_many(keys)
            assert (list(found.values), found.available) == ([None] * 50, False)
            nodes[0].start()
            async with asyncio.timeout(WAIT_S):
                while not (found := await tier.get_many(keys)).available:
                    await tier.available_within(WAIT_S)
            held = [int(stored.value) if stored else None for stored in found.values]
            assert all(value in {None, number} for number, value in enumerate(held))
            assert any(value is None for value in held)
            assert any(value is not None for value in held)


async def test_tier_follows_slots_that_move() -> None:
    """Keys whose slots were given to another node are found there."""
    with running_cluster() as nodes:
        async with _opened(options_from_url(f"redis+cluster://{HOST}:{nodes[0].port}")) as tier:
            assert await tier.available_within(WAIT_S)
            assert all([await _holds(tier, name) for name in range(20)])
            await tier.delete([cache_key(name) for name in range(20)])
            _give_away(nodes[0], nodes[1], {key_slot(redis_name(tier.prefix, cache_key(name))) for name in range(20)})
            assert all([await _holds(tier, name) for name in range(20)])
            assert tier.stats().failures == 0


def _give_away(old: RedisServer, new: RedisServer, slots: set[int]) -> None:
    """Tells both that those of the slots that were the old one's are the new one's; they hold no keys."""
    with old.client() as losing, new.client() as gaining:
        identity = gaining.cluster("MYID").decode()
        for slot in (slot for slot in slots if slot < SLOTS // 3):
            for client in (gaining, losing):
                client.cluster("SETSLOT", slot, "NODE", identity)
        gaining.cluster("BUMPEPOCH")
