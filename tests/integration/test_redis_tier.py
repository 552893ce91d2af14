"""What goes wrong with Redis, and what a look-up makes of it: a flagged miss within the budget, never a wrong value."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

import pytest

from retrieval.caching.envelope import Envelopes
from retrieval.caching.redis.naming import redis_name
from retrieval.caching.redis.options import Node, RedisOptions
from retrieval.caching.redis.tier import RedisTier, open_redis_tier
from retrieval.caching.shared import Found, Selection
from tests.fakes.cache_keys import cache_key
from tests.fakes.redis_server import HOST, RedisServer, free_port
from tests.fakes.tcp_proxy import TcpProxy, running_proxy

TTL_S = 600.0
WAIT_S = 20.0
PATIENT_MS = 5000.0  # a budget that a busy machine keeps
_prefixes = (f"i{number}" for number in count())


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Is a server that the tests of this module share; each has names of its own."""
    with RedisServer() as running:
        yield running


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """Is a server that a test may ruin."""
    with RedisServer() as running:
        yield running


@pytest.fixture
async def proxy(server: RedisServer) -> AsyncIterator[TcpProxy]:
    """Is what stands before the server."""
    async with running_proxy(server.port) as running:
        yield running


def _options(port: int, budget_ms: float = PATIENT_MS) -> RedisOptions:
    return RedisOptions((Node(HOST, port),), budget_ms=budget_ms, key_prefix=next(_prefixes))


@asynccontextmanager
async def _opened(options: RedisOptions) -> AsyncIterator[RedisTier]:
    """Gives a tier, available or not yet."""
    tier = open_redis_tier(options)
    try:
        yield tier
    finally:
        await tier.close()


@asynccontextmanager
async def _filled(options: RedisOptions, number: int = 1) -> AsyncIterator[RedisTier]:
    """Gives an available tier that holds the values of so many keys, each its own number."""
    async with _opened(options) as tier:
        assert await tier.available_within(WAIT_S)
        await _fill(tier, number)
        yield tier


async def _fill(tier: RedisTier, number: int = 1) -> None:
    for value in range(number):
        tier.put(cache_key(value), str(value).encode(), TTL_S)
    await tier.flush()


def _values(found: Found) -> list[bytes | None]:
    return [None if stored is None else stored.value for stored in found.values]


async def _until_unavailable(tier: RedisTier) -> int:
    """Looks up until the tier leaves Redis alone, and returns how many look-ups paid for it."""
    async with asyncio.timeout(WAIT_S):
        for paid in count():
            if not tier.stats().available:
                return paid
            found = await tier.get_many([cache_key(0)])
            assert (_values(found), found.available) == ([None], False)
    raise AssertionError


async def test_tier_opens_while_redis_is_down_and_finds_it_when_it_comes() -> None:
    """Opening waits for nothing; look-ups are flagged misses until the server is there."""
    port = free_port()
    async with _opened(_options(port)) as tier:
        found = await tier.get_many([cache_key(0)])
        assert (_values(found), found.available) == ([None], False)
        tier.put(cache_key(0), b"dropped", TTL_S)
        assert tier.stats().dropped_writes == 1
        assert not await tier.available_within(0.2)
        with RedisServer(port=port):
            assert await tier.available_within(WAIT_S)
            await _fill(tier)
            assert _values(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_with_a_wrong_password_is_unavailable() -> None:
    """A server that refuses us is as good as none, and nothing raises."""
    with RedisServer("--requirepass", "right") as server:
        async with _opened(replace(_options(server.port), password="wrong")) as tier:
            assert not await tier.available_within(0.2)
            assert not (await tier.get_many([cache_key(0)])).available
        async with _filled(replace(_options(server.port), password="right")) as tier:
            assert _values(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_with_a_database_of_its_own_keeps_to_it(server: RedisServer) -> None:
    """The number of a database separates values."""
    options = _options(server.port)
    async with _filled(replace(options, database=3)), _opened(options) as other:
        assert await other.available_within(WAIT_S)
        assert _values(await other.get_many([cache_key(0)])) == [None]


async def test_tier_recovers_when_redis_was_killed_and_comes_back_empty(own_server: RedisServer) -> None:
    """Three look-ups fail, the others cost nothing; after the restart values are missed, put and found (RED-04)."""
    async with _filled(_options(own_server.port)) as tier:
        own_server.kill()
        assert await _until_unavailable(tier) <= 3
        failures = tier.stats().failures
        for _ in range(100):
            assert not (await tier.get_many([cache_key(0)])).available
        assert tier.stats().failures == failures
        assert await tier.invalidate(Selection("acme")) is None
        await tier.delete([cache_key(0)])
        own_server.start()
        assert await tier.available_within(WAIT_S)
        found = await tier.get_many([cache_key(0)])
        assert (_values(found), found.available) == ([None], True)
        await _fill(tier)
        assert _values(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_leaves_a_stopped_redis_alone_until_it_goes_on(own_server: RedisServer) -> None:
    """A server that holds connections open and answers nothing costs three budgets, and is back when it goes on."""
    async with _filled(_options(own_server.port, budget_ms=200.0)) as tier:
        own_server.suspend()
        assert await _until_unavailable(tier) <= 3
        tier.put(cache_key(1), b"dropped", TTL_S)
        assert tier.stats().dropped_writes == 1
        own_server.resume()
        assert await tier.available_within(WAIT_S)
        assert _values(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_takes_a_reply_after_the_budget_for_a_failure(proxy: TcpProxy) -> None:
    """A server that is slower than the budget is left alone, and its late replies reach nobody."""
    async with _filled(_options(proxy.port, budget_ms=100.0), 2) as tier:
        proxy.faults.delay_s = 0.075
        assert await _until_unavailable(tier) <= 3
        proxy.heal()
        assert await tier.available_within(WAIT_S)
        assert _values(await tier.get_many([cache_key(1)])) == [b"1"]
        assert tier.stats().damaged == 0


async def test_tier_never_hands_one_callers_reply_to_another(proxy: TcpProxy) -> None:
    """Look-ups cancelled while their replies are on the way, each followed by another: all values fit (RED-01)."""
    async with _filled(replace(_options(proxy.port), max_connections=2), 20) as tier:
        proxy.faults.delay_s = 0.02
        for number in range(20):
            cancelled = asyncio.create_task(tier.get_many([cache_key(number)]))
            await asyncio.wait([cancelled], timeout=0.03)
            cancelled.cancel()
            following = (number + 7) % 20
            assert _values(await tier.get_many([cache_key(following)])) == [str(following).encode()]
        assert (tier.stats().available, tier.stats().damaged) == (True, 0)


async def test_tier_survives_a_storm_of_cancellations(server: RedisServer) -> None:
    """Hundreds of callers that leave at every moment take no connection with them (RED-01)."""
    async with _filled(replace(_options(server.port), max_connections=2), 10) as tier:
        for turns in range(40):
            tasks = [asyncio.create_task(tier.get_many([cache_key(number)])) for number in range(10)]
            for _ in range(turns):
                await asyncio.sleep(0)
            for number, task in enumerate(tasks):
                if number % 2:
                    task.cancel()
            for number, result in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
                if isinstance(result, Found):
                    assert _values(result) == [str(number).encode()]
                else:
                    assert isinstance(result, asyncio.CancelledError)
        with server.client() as client:
            assert len(client.client_list()) <= 2 + 3 + 1  # look-ups, spare ones, and the one that counts


async def test_tier_waits_for_a_connection_instead_of_failing(server: RedisServer) -> None:
    """A hundred look-ups at once over two connections are a hundred successes (RED-02)."""
    async with _filled(replace(_options(server.port), max_connections=2), 100) as tier:
        founds = await asyncio.gather(*(tier.get_many([cache_key(number)]) for number in range(100)))
        assert [_values(found) for found in founds] == [[str(number).encode()] for number in range(100)]
        assert tier.stats().failures == 0


async def test_tier_counts_a_wait_that_ends_without_a_connection(proxy: TcpProxy) -> None:
    """Who gets no connection within the budget has a flagged miss; nobody waits longer."""
    async with _filled(replace(_options(proxy.port, 100.0), max_connections=1, failures_to_open=100)) as tier:
        proxy.stall()
        founds = await asyncio.gather(*(tier.get_many([cache_key(0)]) for _ in range(10)))
        assert [found.available for found in founds] == [False] * 10
        assert tier.stats().failures == 10


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_tier_survives_connections_that_end_under_a_call(proxy: TcpProxy, reset: bool) -> None:
    """A connection that goes while a reply is awaited is a flagged miss; the next call has a new one."""
    async with _filled(_options(proxy.port)) as tier:
        proxy.stall()
        waiting = asyncio.create_task(tier.get_many([cache_key(0)]))
        await asyncio.wait([waiting], timeout=0.05)
        await proxy.drop(reset=reset)
        assert not (await waiting).available
        proxy.heal()
        assert _values(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_survives_connections_that_ended_while_idle(proxy: TcpProxy) -> None:
    """A pooled connection that the other side has closed is replaced before it is used."""
    async with _filled(_options(proxy.port)) as tier:
        await proxy.drop()
        found = await tier.get_many([cache_key(0)])
        assert (_values(found), found.available) == ([b"0"], True)


@pytest.mark.parametrize("length", [0, 1, 4, 20, 48])
async def test_tier_survives_a_reply_that_is_cut(proxy: TcpProxy, length: int) -> None:
    """A reply that ends anywhere is a flagged miss."""
    async with _filled(_options(proxy.port)) as tier:
        proxy.faults.cut_after_bytes = length
        assert not (await tier.get_many([cache_key(0)])).available
        proxy.heal()
        assert _values(await tier.get_many([cache_key(0)])) == [b"0"]


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
    async with _filled(_options(proxy.port, budget_ms=300.0)) as tier:
        proxy.faults.garbage = garbage
        for _ in range(4):
            assert _values(await tier.get_many([cache_key(0)])) == [None]
        proxy.heal()
        assert await tier.available_within(WAIT_S)
        async with asyncio.timeout(WAIT_S):
            while _values(await tier.get_many([cache_key(0)])) != [b"0"]:
                await tier.available_within(WAIT_S)


async def test_tier_detects_replies_that_belong_to_another_question(proxy: TcpProxy) -> None:
    """A connection whose replies are one off gives misses and is given up; none comes under a wrong key (RED-01)."""
    async with _filled(replace(_options(proxy.port), max_connections=1), 3) as tier:
        stray = Envelopes().seal(cache_key(2), b"2", 5.0)
        proxy.faults.extra = b"$%d\r\n%b\r\n" % (len(stray), stray)
        for _ in range(20):
            for number in range(3):
                (value,) = _values(await tier.get_many([cache_key(number)]))
                assert value in {None, str(number).encode()}
        assert tier.stats().damaged > 0
        assert await tier.available_within(WAIT_S)
        assert _values(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_overwrites_what_is_damaged(server: RedisServer) -> None:
    """Values cut short, zeros, text, another key's or of another type are counted misses, then overwritten (RED-06)."""
    async with _filled(_options(server.port), 5) as tier:
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
        assert (_values(found), found.available) == ([None] * 4 + [b"4"], True)
        assert tier.stats().damaged == 4
        await _fill(tier, 5)
        assert _values(await tier.get_many([cache_key(number) for number in range(5)])) == [
            b"0",
            b"1",
            b"2",
            b"3",
            b"4",
        ]


async def test_tier_gives_nothing_for_a_value_copied_from_another_key(server: RedisServer) -> None:
    """A value under a name that is not its own is a miss, and is overwritten when it is put again (RED-01)."""
    async with _filled(_options(server.port), 2) as tier:
        first, second = (redis_name(tier.prefix, cache_key(number)).decode() for number in range(2))
        with server.client() as client:
            client.copy(first, second, replace=True)
        assert _values(await tier.get_many([cache_key(1)])) == [None]
        assert tier.stats().damaged == 1
        assert await tier.available_within(WAIT_S)
        await _fill(tier, 2)
        assert _values(await tier.get_many([cache_key(1)])) == [b"1"]


async def test_tier_reads_on_when_redis_is_full() -> None:
    """A server without room refuses writes, which are counted; what it holds is read as before."""
    with RedisServer("--maxmemory-policy", "noeviction") as server:
        async with _filled(_options(server.port)) as tier:
            with server.client() as client:
                client.config_set("maxmemory", 1)
            for number in range(1, 11):
                tier.put(cache_key(number), b"refused", TTL_S)
            await tier.flush()
            stats = tier.stats()
            assert (stats.writes, stats.dropped_writes, stats.available) == (1, 10, True)
            assert _values(await tier.get_many([cache_key(0), cache_key(1)])) == [b"0", None]


async def test_tier_drops_writes_beyond_its_bounds(server: RedisServer) -> None:
    """Writes that find the queue full, by number or by bytes, or are too large for any, are dropped and counted."""
    options = replace(_options(server.port), queue_count=3, queue_bytes=1000)
    async with _filled(options) as tier:
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
        assert _values(found) == [b"0", bytes(900), None, b"", b"", None, None]
    async with _filled(_options(server.port)) as tier:
        tier.put(cache_key(1), bytes((8 << 20) + 1), TTL_S)
        assert tier.stats().dropped_writes == 1


async def test_tier_writes_large_values_beside_the_loop(server: RedisServer) -> None:
    """Values whose compressing would hold up the loop come back whole."""
    async with _filled(_options(server.port)) as tier:
        values = [bytes([number]) * 500_000 for number in range(4)]
        for number, value in enumerate(values):
            tier.put(cache_key(number), value, TTL_S)
        await tier.flush()
        assert _values(await tier.get_many([cache_key(number) for number in range(4)])) == values


async def test_tier_closes_while_redis_is_silent(proxy: TcpProxy) -> None:
    """Closing waits for no reply, with look-ups, writes and a probe under way."""
    async with _filled(_options(proxy.port)) as tier:
        proxy.stall()
        tier.put(cache_key(1), b"x", TTL_S)
        waiting = asyncio.create_task(tier.get_many([cache_key(0)]))
        await asyncio.wait([waiting], timeout=0.02)
        async with asyncio.timeout(WAIT_S):
            await tier.close()
            assert not (await waiting).available
