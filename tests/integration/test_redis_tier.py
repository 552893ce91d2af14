"""What goes wrong with Redis, and what a look-up makes of it: a flagged miss within the budget, never a wrong value."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from retrieval.caching.shared import Found, Selection
from tests.fakes.cache_keys import cache_key
from tests.fakes.redis_server import RedisServer, free_port
from tests.fakes.redis_tiers import (
    TTL_S,
    WAIT_S,
    fill,
    filled_tier,
    opened_tier,
    tier_options,
    until_unavailable,
    values_of,
)
from tests.fakes.tcp_proxy import TcpProxy, running_proxy


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


async def test_tier_opens_while_redis_is_down_and_finds_it_when_it_comes() -> None:
    """Opening waits for nothing; look-ups are flagged misses until the server is there."""
    port = free_port()
    async with opened_tier(tier_options(port)) as tier:
        found = await tier.get_many([cache_key(0)])
        assert (values_of(found), found.available) == ([None], False)
        tier.put(cache_key(0), b"dropped", TTL_S)
        assert tier.stats().dropped_writes == 1
        assert not await tier.available_within(0.2)
        with RedisServer(port=port):
            assert await tier.available_within(WAIT_S)
            await fill(tier)
            assert values_of(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_with_a_wrong_password_is_unavailable() -> None:
    """A server that refuses us is as good as none, and nothing raises."""
    with RedisServer("--requirepass", "right") as server:
        async with opened_tier(replace(tier_options(server.port), password="wrong")) as tier:
            assert not await tier.available_within(0.2)
            assert not (await tier.get_many([cache_key(0)])).available
        async with filled_tier(replace(tier_options(server.port), password="right")) as tier:
            assert values_of(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_with_a_database_of_its_own_keeps_to_it(server: RedisServer) -> None:
    """The number of a database separates values."""
    options = tier_options(server.port)
    async with filled_tier(replace(options, database=3)), opened_tier(options) as other:
        assert await other.available_within(WAIT_S)
        assert values_of(await other.get_many([cache_key(0)])) == [None]


async def test_tier_recovers_when_redis_was_killed_and_comes_back_empty(own_server: RedisServer) -> None:
    """Three look-ups fail, the others cost nothing; after the restart values are missed, put and found (RED-04)."""
    async with filled_tier(tier_options(own_server.port)) as tier:
        own_server.kill()
        assert await until_unavailable(tier) <= 3
        failures = tier.stats().failures
        for _ in range(100):
            assert not (await tier.get_many([cache_key(0)])).available
        assert tier.stats().failures == failures
        assert await tier.invalidate(Selection("acme")) is None
        await tier.delete([cache_key(0)])
        own_server.start()
        assert await tier.available_within(WAIT_S)
        found = await tier.get_many([cache_key(0)])
        assert (values_of(found), found.available) == ([None], True)
        await fill(tier)
        assert values_of(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_leaves_a_stopped_redis_alone_until_it_goes_on(own_server: RedisServer) -> None:
    """A server that holds connections open and answers nothing costs three budgets, and is back when it goes on."""
    async with filled_tier(tier_options(own_server.port, budget_ms=200.0)) as tier:
        own_server.suspend()
        assert await until_unavailable(tier) <= 3
        tier.put(cache_key(1), b"dropped", TTL_S)
        assert tier.stats().dropped_writes == 1
        own_server.resume()
        assert await tier.available_within(WAIT_S)
        assert values_of(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_takes_a_reply_after_the_budget_for_a_failure(proxy: TcpProxy) -> None:
    """A server that is slower than the budget is left alone, and its late replies reach nobody."""
    async with filled_tier(tier_options(proxy.port, budget_ms=100.0), 2) as tier:
        proxy.faults.delay_s = 0.075
        assert await until_unavailable(tier) <= 3
        proxy.heal()
        assert await tier.available_within(WAIT_S)
        assert values_of(await tier.get_many([cache_key(1)])) == [b"1"]
        assert tier.stats().damaged == 0


async def test_tier_never_hands_one_callers_reply_to_another(proxy: TcpProxy) -> None:
    """Look-ups cancelled while their replies are on the way, each followed by another: all values fit (RED-01)."""
    async with filled_tier(replace(tier_options(proxy.port), max_connections=2), 20) as tier:
        proxy.faults.delay_s = 0.02
        for number in range(20):
            cancelled = asyncio.create_task(tier.get_many([cache_key(number)]))
            await asyncio.wait([cancelled], timeout=0.03)
            cancelled.cancel()
            following = (number + 7) % 20
            assert values_of(await tier.get_many([cache_key(following)])) == [str(following).encode()]
        assert (tier.stats().available, tier.stats().damaged) == (True, 0)


async def test_tier_survives_a_storm_of_cancellations(server: RedisServer) -> None:
    """Hundreds of callers that leave at every moment take no connection with them (RED-01)."""
    async with filled_tier(replace(tier_options(server.port), max_connections=2), 10) as tier:
        for turns in range(40):
            tasks = [asyncio.create_task(tier.get_many([cache_key(number)])) for number in range(10)]
            for _ in range(turns):
                await asyncio.sleep(0)
            for number, task in enumerate(tasks):
                if number % 2:
                    task.cancel()
            for number, result in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
                if isinstance(result, Found):
                    assert values_of(result) == [str(number).encode()]
                else:
                    assert isinstance(result, asyncio.CancelledError)
        with server.client() as client:
            assert len(client.client_list()) <= 2 + 3 + 1  # look-ups, spare ones, and the one that counts


async def test_tier_waits_for_a_connection_instead_of_failing(server: RedisServer) -> None:
    """A hundred look-ups at once over two connections are a hundred successes (RED-02)."""
    async with filled_tier(replace(tier_options(server.port), max_connections=2), 100) as tier:
        founds = await asyncio.gather(*(tier.get_many([cache_key(number)]) for number in range(100)))
        assert [values_of(found) for found in founds] == [[str(number).encode()] for number in range(100)]
        assert tier.stats().failures == 0


async def test_tier_counts_a_wait_that_ends_without_a_connection(proxy: TcpProxy) -> None:
    """Who gets no connection within the budget has a flagged miss; nobody waits longer."""
    async with filled_tier(replace(tier_options(proxy.port, 100.0), max_connections=1, failures_to_open=100)) as tier:
        proxy.stall()
        founds = await asyncio.gather(*(tier.get_many([cache_key(0)]) for _ in range(10)))
        assert [found.available for found in founds] == [False] * 10
        assert tier.stats().failures == 10


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_tier_survives_connections_that_end_under_a_call(proxy: TcpProxy, reset: bool) -> None:
    """A connection that goes while a reply is awaited is a flagged miss; the next call has a new one."""
    async with filled_tier(tier_options(proxy.port)) as tier:
        proxy.stall()
        waiting = asyncio.create_task(tier.get_many([cache_key(0)]))
        await asyncio.wait([waiting], timeout=0.05)
        await proxy.drop(reset=reset)
        assert not (await waiting).available
        proxy.heal()
        assert values_of(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_survives_connections_that_ended_while_idle(proxy: TcpProxy) -> None:
    """A pooled connection that the other side has closed is replaced before it is used."""
    async with filled_tier(tier_options(proxy.port)) as tier:
        await proxy.drop()
        found = await tier.get_many([cache_key(0)])
        assert (values_of(found), found.available) == ([b"0"], True)


@pytest.mark.parametrize("length", [0, 1, 4, 20, 48])
async def test_tier_survives_a_reply_that_is_cut(proxy: TcpProxy, length: int) -> None:
    """A reply that ends anywhere is a flagged miss."""
    async with filled_tier(tier_options(proxy.port)) as tier:
        proxy.faults.cut_after_bytes = length
        assert not (await tier.get_many([cache_key(0)])).available
        proxy.heal()
        assert values_of(await tier.get_many([cache_key(0)])) == [b"0"]


async def test_tier_closes_while_redis_is_silent(proxy: TcpProxy) -> None:
    """Closing waits for no reply, with look-ups, writes and a probe under way."""
    async with filled_tier(tier_options(proxy.port)) as tier:
        proxy.stall()
        tier.put(cache_key(1), b"x", TTL_S)
        waiting = asyncio.create_task(tier.get_many([cache_key(0)]))
        await asyncio.wait([waiting], timeout=0.02)
        async with asyncio.timeout(WAIT_S):
            await tier.close()
            assert not (await waiting).available
