"""Tiers on real servers, each with names of its own, and what tests do with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from retrieval.caching.redis.options import Node, RedisOptions
from retrieval.caching.redis.tier import RedisTier, open_redis_tier
from retrieval.caching.shared import Found
from tests.fakes.cache_keys import cache_key
from tests.fakes.redis_server import HOST

TTL_S = 600.0
WAIT_S = 20.0
PATIENT_MS = 5000.0  # a budget that a busy machine keeps
_prefixes = (f"i{number}" for number in count())


def tier_options(port: int, budget_ms: float = PATIENT_MS) -> RedisOptions:
    """Returns options under which nothing is stored yet."""
    return RedisOptions((Node(HOST, port),), budget_ms=budget_ms, key_prefix=next(_prefixes))


@asynccontextmanager
async def opened_tier(options: RedisOptions) -> AsyncIterator[RedisTier]:
    """Gives a tier, available or not yet."""
    tier = open_redis_tier(options)
    try:
        yield tier
    finally:
        await tier.close()


@asynccontextmanager
async def filled_tier(options: RedisOptions, number: int = 1) -> AsyncIterator[RedisTier]:
    """Gives an available tier that holds the values of so many keys, each its own number."""
    async with opened_tier(options) as tier:
        assert await tier.available_within(WAIT_S)
        await fill(tier, number)
        yield tier


async def fill(tier: RedisTier, number: int = 1) -> None:
    """Stores so many values, each its own number."""
    for value in range(number):
        tier.put(cache_key(value), str(value).encode(), TTL_S)
    await tier.flush()


def values_of(found: Found) -> list[bytes | None]:
    """Returns the values without their times."""
    return [None if stored is None else stored.value for stored in found.values]


async def until_unavailable(tier: RedisTier) -> int:
    """Looks up until the tier leaves Redis alone, and returns how many look-ups paid for it."""
    async with asyncio.timeout(WAIT_S):
        for paid in count():
            if not tier.stats().available:
                return paid
            found = await tier.get_many([cache_key(0)])
            assert (values_of(found), found.available) == ([None], False)
    raise AssertionError
