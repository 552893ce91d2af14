"""What every shared tier must do, tried on one Redis, behind TLS, behind a Sentinel, on a cluster, and on none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from retrieval.caching.encryption import TenantCipher
from retrieval.caching.keys import Purpose
from retrieval.caching.redis.naming import redis_name
from retrieval.caching.redis.tier import RedisTier
from retrieval.caching.shared import Found, NoSharedTier, Selection, SharedTier
from tests.contract.shared_places import PLACES, Place, opened
from tests.fakes.cache_keys import cache_key

TTL_S = 600.0
CIPHER = TenantCipher([bytes(range(32))])


@pytest.fixture(scope="module", params=sorted(PLACES))
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Is where the servers are."""
    with PLACES[request.param]() as found:
        yield found


@pytest.fixture
async def tier(place: Place, tmp_path: Path) -> AsyncIterator[RedisTier]:
    """Is an empty tier that is available."""
    async with opened(place, tmp_path) as found:
        yield found


def _values(found: Found) -> list[bytes | None]:
    assert found.available
    return [None if stored is None else stored.value for stored in found.values]


async def test_shared_tier_gives_back_what_was_put(tier: RedisTier) -> None:
    """Values come back in the order of the keys, whole, small, empty and large, with the time they were stored at."""
    before_s = time.time()
    values = [b"", b"small", bytes(100_000), b"text that shrinks " * 1000]
    keys = [cache_key(number) for number in range(len(values))]
    for key, value in zip(keys, values, strict=True):
        tier.put(key, value, TTL_S)
    await tier.flush()
    found = await tier.get_many([*keys, cache_key("never put")])
    assert _values(found) == [*values, None]
    assert all(before_s <= stored.stored_at_s <= time.time() for stored in found.values if stored is not None)
    stats = tier.stats()
    assert (stats.lookups, stats.hits, stats.writes, stats.damaged, stats.failures) == (5, 4, 4, 0, 0)


async def test_shared_tier_reads_no_keys_and_many(tier: RedisTier) -> None:
    """No keys give no values; as many keys as a rerank has pairs are one look-up."""
    assert _values(await tier.get_many([])) == []
    keys = [cache_key(number, purpose=Purpose.PAIR_SCORE) for number in range(100)]
    for number, key in enumerate(keys):
        tier.put(key, str(number).encode(), TTL_S)
    await tier.flush()
    assert _values(await tier.get_many(keys)) == [str(number).encode() for number in range(100)]


async def test_shared_tier_keeps_the_newest_value(tier: RedisTier) -> None:
    """What was put last under a key is what is found, written at once or after the first."""
    key = cache_key("changing")
    tier.put(key, b"first", TTL_S)
    tier.put(key, b"second", TTL_S)
    await tier.flush()
    assert _values(await tier.get_many([key])) == [b"second"]
    tier.put(key, b"third", TTL_S)
    await tier.flush()
    assert _values(await tier.get_many([key])) == [b"third"]


async def test_shared_tier_tells_keys_apart(tier: RedisTier) -> None:
    """Tenants, collections and purposes never see each other's values."""
    tier.put(cache_key("same"), b"ours", TTL_S)
    await tier.flush()
    others = [
        cache_key("same", tenant="other"),
        cache_key("same", collection="other"),
        cache_key("same", purpose=Purpose.ANSWER),
    ]
    assert _values(await tier.get_many(others)) == [None, None, None]


async def test_shared_tier_deletes(tier: RedisTier) -> None:
    """A deleted value is gone, whether it had been written or still waited; others stay."""
    written, waiting, kept = cache_key("written"), cache_key("waiting"), cache_key("kept")
    tier.put(written, b"1", TTL_S)
    tier.put(kept, b"2", TTL_S)
    await tier.flush()
    tier.put(waiting, b"3", TTL_S)
    await tier.delete([written, waiting, cache_key("never put")])
    await tier.flush()
    assert _values(await tier.get_many([written, waiting, kept])) == [None, None, b"2"]


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        (Selection("acme"), ["other tenant"]),
        (Selection("acme", "docs"), ["other tenant", "other collection"]),
        (Selection("acme", purpose=Purpose.ANSWER), ["other tenant", "other collection", "result"]),
        (Selection("acme", "docs", Purpose.ANSWER), ["other tenant", "other collection", "result"]),
        (Selection("nobody"), ["other tenant", "other collection", "result", "answer"]),
        (Selection("acme", older_than_s=3600.0), ["other tenant", "other collection", "result", "answer"]),
        (Selection("acme", older_than_s=0.0), ["other tenant"]),
    ],
)
async def test_shared_tier_invalidates_the_selected(tier: RedisTier, selection: Selection, left: list[str]) -> None:
    """Values leave by tenant, collection, purpose and age; the count is of those that left, and the rest stay."""
    keys = {
        "other tenant": cache_key(1, tenant="other"),
        "other collection": cache_key(1, collection="other"),
        "result": cache_key(1),
        "answer": cache_key(1, purpose=Purpose.ANSWER),
    }
    for name, key in keys.items():
        tier.put(key, name.encode(), TTL_S)
    await tier.flush()
    assert await tier.invalidate(selection) == len(keys) - len(left)
    assert [value.decode() for value in _values(await tier.get_many(list(keys.values()))) if value] == left


async def test_shared_tier_invalidates_more_than_a_page(tier: RedisTier) -> None:
    """A selection of more values than one SCAN looks at leaves none behind."""
    keys = [cache_key(number, tenant="many") for number in range(1500)]
    for key in keys:
        tier.put(key, b"x", TTL_S)
    await tier.flush()
    assert await tier.invalidate(Selection("many")) == 1500
    assert not any(_values(await tier.get_many(keys)))


async def test_shared_tier_ends_values_by_their_time_to_live(tier: RedisTier, place: Place) -> None:
    """A value carries its time to live, up to a tenth more or less."""
    names = [redis_name(tier.prefix, cache_key(number)) for number in range(20)]
    for number in range(20):
        tier.put(cache_key(number), b"x", TTL_S)
    await tier.flush()
    left_s = [left for name in names for left in _times_left_s(place, name)]
    assert len(left_s) == 20
    assert all(0.89 * TTL_S < left <= 1.1 * TTL_S for left in left_s)
    assert max(left_s) - min(left_s) > 1.0


def _times_left_s(place: Place, name: bytes) -> list[float]:
    """Asks every server for the key's time to live; a node of a cluster refuses keys of another."""
    left_s = []
    for server in place.servers:
        with server.client() as client, suppress(redis.ResponseError):
            left_s.append(client.pttl(name) / 1000)
    return left_s


async def test_shared_tier_survives_a_cancelled_caller(tier: RedisTier) -> None:
    """Cancelling a look-up at any of its turns leaves nothing for the next one to stumble over (RED-01)."""
    keys = [cache_key(number) for number in range(20)]
    for number, key in enumerate(keys):
        tier.put(key, str(number).encode(), TTL_S)
    await tier.flush()
    for turns in range(20):
        task = asyncio.create_task(tier.get_many([keys[turns]]))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        following = (turns + 1) % 20
        assert _values(await tier.get_many([keys[following]])) == [str(following).encode()]
    assert tier.stats().available
    assert tier.stats().damaged == 0


async def test_shared_tier_encrypts(place: Place, tmp_path: Path) -> None:
    """With a cipher, the store never holds the value in the clear, and the value comes back."""
    secret = b"the merger closes on Friday"
    async with opened(place, tmp_path, CIPHER) as tier:
        tier.put(cache_key("secret"), secret, TTL_S)
        await tier.flush()
        assert _values(await tier.get_many([cache_key("secret")])) == [secret]
        for server in place.servers:
            with server.client() as client:
                for name in client.keys(f"{tier.prefix}:*"):
                    assert secret not in (client.dump(name) or b"")
        assert await tier.invalidate(Selection("acme", older_than_s=0.0)) == 1


async def test_shared_tier_closes_twice(place: Place, tmp_path: Path) -> None:
    """After closing, which may be done twice, look-ups miss, puts are dropped, and nothing raises."""
    async with opened(place, tmp_path) as tier:
        await tier.close()
        await tier.close()
        tier.put(cache_key(1), b"x", TTL_S)
        found = await tier.get_many([cache_key(1)])
        assert (list(found.values), found.available) == ([None], False)
        await tier.delete([cache_key(1)])
        assert await tier.invalidate(Selection("acme")) is None


async def test_no_shared_tier_misses_and_is_available() -> None:
    """The tier that shares nothing takes the same calls, finds nothing, and is never the reason for a flag."""
    tier: SharedTier = NoSharedTier()
    tier.put(cache_key(1), b"x", TTL_S)
    assert _values(await tier.get_many([cache_key(1), cache_key(2)])) == [None, None]
    await tier.delete([cache_key(1)])
    assert await tier.invalidate(Selection("acme")) == 0
    assert (tier.stats().kind, tier.stats().available) == ("none", True)
    await tier.close()
    await tier.close()
