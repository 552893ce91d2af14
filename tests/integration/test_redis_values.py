"""What comes out of Redis when it, or the way to it, holds what nobody put there; and what it refuses to take in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from retrieval.caching.envelope import Envelopes
from retrieval.caching.redis.naming import redis_name
from tests.fakes.cache_keys import cache_key
from tests.fakes.redis_server import RedisServer
from tests.fakes.redis_tiers import (
    TTL_S,
    WAIT_S,
    fill,
    filled_tier,
    tier_options,
    values_of,
)
from tests.fakes.tcp_proxy import TcpProxy, running_proxy


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Is a server that the tests of this module share; each has names of its own."""
    with RedisServer() as running:
        yield running


@pytest.fixture
async def proxy(server: RedisServer) -> AsyncIterator[TcpProxy]:
    """Is what stands before the server."""
    async with running_proxy(server.port) as running:
        yield running


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"$abc\r\n",
        b"$5\r\nabc\r\n\r\n\r\n",
        b"\x00\xff\xfe\r\n",
        b"*1\r\n$-7\r\n",
        b":1\r\n",
        b"+OK\r\n",
        b"$3\r\nabc\r\n",
        b"-WHAT no idea\r\n",
        b"-LOADING Redis is loading the dataset in memory\r\n",
    ],
)
async def test_tier_makes_misses_of_garbage(proxy: TcpProxy, garbage: bytes) -> None:
    """Whatever comes in the place of replies, nothing raises and no value is made of it; healed, it works again."""
    async with filled_tier(tier_options(proxy.port, budget_ms=300.0)) as tier:
        proxy.faults.garbage = garbage
        for _ in range(4):
            assert values_of(await tier.get_many([cache_key(0)])) == [None]
        proxy.heal()
        assert await tier.available_within(WAIT_S)
        async with asyncio.timeout(WAIT_S):
            while values_of(await tier.get_many([cache_key(0)])) != [b"0"]:
                await tier.available_within(WAIT_S)


async def test_tier_detects_replies_that_belong_to_another_question(proxy: TcpProxy) -> None:
    """A connection whose replies are one off gives misses and is given up; none comes under a wrong key (RED-01)."""
    async with filled_tier(replace(tier_options(proxy.port), max_connections=1), 3) as tier:
        stray = Envelopes().seal(cache_key(2), b"2", 5.0)
        proxy.faults.extra = b"$%d\r\n%b\r\n" % (len(stray), stray)
        for _ in range(20):
            for number in range(3):
                (value,) = values_of(await tier.get_many([cache_key(number)]))
                assert value in {None, str(number).encode()}
        assert tier.stats().damaged > 0
        assert await tier.available_within(WAIT_S)
        assert values_of(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_overwrites_what_is_damaged(server: RedisServer) -> None:
    """Values cut short, zeros, text, another key's or of another type are counted misses, then overwritten (RED-06)."""
    async with filled_tier(tier_options(server.port), 5) as tier:
        names = [redis_name(tier.prefix, cache_key(number)) for number in range(6)]
        with server.client() as client:
            whole = client.get(names[0])
            assert isinstance(whole, bytes)
            client.set(names[0], whole[:-3])
            client.set(names[1], bytes(len(whole)))
            client.set(names[2], b"abc")
            client.delete(names[3])
            client.lpush(names[3], b"a list")
        found = await tier.get_many([cache_key(number) for number in range(5)])
        assert (values_of(found), found.available) == ([None] * 4 + [b"4"], True)
        assert tier.stats().damaged == 4
        await fill(tier, 5)
        assert values_of(await tier.get_many([cache_key(number) for number in range(5)])) == [
            b"0",
            b"1",
            b"2",
            b"3",
            b"4",
        ]


async def test_tier_gives_nothing_for_a_value_copied_from_another_key(server: RedisServer) -> None:
    """A value under a name that is not its own is a miss, and is overwritten when it is put again (RED-01)."""
    async with filled_tier(tier_options(server.port), 2) as tier:
        first, second = (redis_name(tier.prefix, cache_key(number)).decode() for number in range(2))
        with server.client() as client:
            client.copy(first, second, replace=True)
        assert values_of(await tier.get_many([cache_key(1)])) == [None]
        assert tier.stats().damaged == 1
        assert await tier.available_within(WAIT_S)
        await fill(tier, 2)
        assert values_of(await tier.get_many([cache_key(1)])) == [b"1"]


async def test_tier_reads_on_when_redis_is_full() -> None:
    """A server without room refuses writes, which are counted; what it holds is read as before."""
    with RedisServer("--maxmemory-policy", "noeviction") as server:
        async with filled_tier(tier_options(server.port)) as tier:
            with server.client() as client:
                client.config_set("maxmemory", 1)
            for number in range(1, 11):
                tier.put(cache_key(number), b"refused", TTL_S)
            await tier.flush()
            stats = tier.stats()
            assert (stats.writes, stats.dropped_writes, stats.available) == (1, 10, True)
            assert values_of(await tier.get_many([cache_key(0), cache_key(1)])) == [b"0", None]


async def test_tier_drops_writes_beyond_its_bounds(server: RedisServer) -> None:
    """Writes that find the queue full, by number or by bytes, or are too large for any, are dropped and counted."""
    options = replace(tier_options(server.port), queue_count=3, queue_bytes=1000)
    async with filled_tier(options) as tier:
        tier.put(cache_key(1), bytes(900), TTL_S)
        tier.put(cache_key(2), bytes(200), TTL_S)
        tier.put(cache_key(3), b"", TTL_S)
        tier.put(cache_key(4), b"", TTL_S)
        tier.put(cache_key(5), b"", TTL_S)
        tier.put(cache_key(6), b"", 0.0)
        await tier.flush()
        stats = tier.stats()
        assert (stats.writes, stats.dropped_writes) == (4, 3)
        found = await tier.get_many([cache_key(number) for number in range(7)])
        assert values_of(found) == [b"0", bytes(900), None, b"", b"", None, None]
    async with filled_tier(tier_options(server.port)) as tier:
        tier.put(cache_key(1), bytes((8 << 20) + 1), TTL_S)
        assert tier.stats().dropped_writes == 1


async def test_tier_writes_large_values_beside_the_loop(server: RedisServer) -> None:
    """Values whose compressing would hold up the loop come back whole."""
    async with filled_tier(tier_options(server.port)) as tier:
        values = [bytes([number]) * 500_000 for number in range(4)]
        for number, value in enumerate(values):
            tier.put(cache_key(number), value, TTL_S)
        await tier.flush()
        assert values_of(await tier.get_many([cache_key(number) for number in range(4)])) == values
