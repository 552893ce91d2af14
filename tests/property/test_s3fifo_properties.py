"""The cache in this process: bounded whatever happens, in step with what is beside it, better than recency in scans."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench._common.eviction_policies import Lru
from retrieval.caching.keys import CacheKey, Purpose
from retrieval.caching.s3fifo import ENTRY_OVERHEAD_BYTES, GHOST_OVERHEAD_BYTES, KEY_BYTES, S3Fifo

_EMPTY = KEY_BYTES + ENTRY_OVERHEAD_BYTES  # bytes of an entry without its value
_KEYS = st.integers(0, 30)
_STEPS = st.lists(
    st.tuples(st.sampled_from(["get", "peek", "put", "invalidate"]), _KEYS, st.binary(max_size=400)), max_size=200
)


def _key(number: int) -> CacheKey:
    return CacheKey(Purpose.RESULT, "acme", "docs", number.to_bytes(32, "little"))


def _cache(capacity: int) -> S3Fifo[Hashable, bytes]:
    return S3Fifo("c", capacity, len)


@given(_STEPS, st.integers(0, 8000))
def test_cache_never_passes_its_bound_and_never_lies(steps: list[tuple[str, int, bytes]], capacity: int) -> None:
    """Keys, values and ghosts stay within the bytes; what is found is what was put last."""
    cache: S3Fifo[CacheKey, bytes] = S3Fifo("c", capacity, len)
    truth = dict[CacheKey, bytes]()
    for step, number, value in steps:
        key = _key(number)
        if step == "put":
            cache.put(key, value)
            truth[key] = value
        elif step == "invalidate":
            cache.invalidate(key)
            truth.pop(key, None)
        else:
            assert (cache.get if step == "get" else cache.peek)(key) in (None, truth.get(key))
        assert 0 <= cache.used_bytes <= capacity
        assert cache.ghost_count * (KEY_BYTES + GHOST_OVERHEAD_BYTES) <= capacity * 0.1


@given(_STEPS, st.integers(0, 8000))
def test_what_is_kept_beside_the_values_never_drifts(steps: list[tuple[str, int, bytes]], capacity: int) -> None:
    """SEM-08: an index told of each value that leaves holds exactly the values that are there, and each leaves once."""
    beside = dict[CacheKey, bytes]()

    def leave(key: CacheKey, value: bytes) -> None:
        assert beside.pop(key) is value
        assert key not in cache

    cache = S3Fifo[CacheKey, bytes]("c", capacity, len, leave)
    for step, number, value in steps:
        key = _key(number)
        if step == "put":
            cache.put(key, value)
            if key in cache:
                beside[key] = value
        elif step == "invalidate":
            cache.invalidate(key)
        else:
            cache.get(key)
        assert dict(cache.items()) == beside
        assert len(cache) == len(beside)


@given(_STEPS, st.integers(0, 8000))
def test_counts_add_up(steps: list[tuple[str, int, bytes]], capacity: int) -> None:
    """Each get is a hit or a miss, a peek is neither, and what left without being forgotten was evicted."""
    gone = list[int]()
    cache = S3Fifo[int, bytes]("c", capacity, len, lambda key, _: gone.append(key))
    gets = forgotten = 0
    for step, number, value in steps:
        forgotten += step in ("put", "invalidate") and number in cache
        gets += step == "get"
        {"get": cache.get, "peek": cache.peek, "invalidate": cache.invalidate}.get(
            step, lambda key, value=value: cache.put(key, value)
        )(number)
    assert cache.hits + cache.misses == gets
    assert cache.evictions + forgotten == len(gone)


@given(st.lists(_KEYS, max_size=100))
def test_cache_with_room_forgets_nothing(numbers: list[int]) -> None:
    """Without pressure nothing leaves."""
    cache = _cache(1_000_000)
    for number in numbers:
        cache.put(number, bytes(number))
    assert len(cache) == len(set(numbers))
    assert cache.evictions == 0
    assert all(cache.get(number) == bytes(number) for number in numbers)


def test_value_that_grows_later_does_not_upset_the_sum() -> None:
    """The bytes of an entry are those it had when it came."""
    cache = S3Fifo[str, list[int]]("c", 100_000, lambda value: 8 * len(value))
    grown = [1, 2]
    cache.put("a", grown)
    grown += range(1000)
    cache.invalidate("a")
    assert cache.used_bytes == 0


def test_value_too_large_is_not_stored_and_takes_the_earlier_one_with_it() -> None:
    """Nobody is served the old value after the new one was refused."""
    gone = list[bytes]()
    cache = S3Fifo[str, bytes]("c", 10_000, len, lambda _, value: gone.append(value))
    cache.put("a", b"old")
    cache.put("a", bytes(10_000))
    assert "a" not in cache
    assert gone == [b"old"]


def test_one_hit_wonders_leave_early_and_what_is_used_stays() -> None:
    """Ten thousand keys that nobody asks for again pass by, and a key that was used is still there."""
    cache = _cache(100 * (_EMPTY + 4))
    cache.put("used", b"value")
    cache.get("used")
    for number in range(10_000):
        cache.put(number, b"once")
    assert cache.get("used") == b"value"


def test_key_that_comes_back_soon_after_it_left_stays_longer() -> None:
    """A ghost that is put again goes where a scan does not reach it."""
    cache = _cache(1000 * (_EMPTY + 4))
    scan = iter(range(100_000))
    cache.put("again", b"value")
    while "again" in cache:
        cache.put(next(scan), b"once")
    assert cache.ghost_count
    cache.put("again", b"value")
    for _ in range(500):
        cache.put(next(scan), b"once")
    assert cache.get("again") == b"value"


def test_cache_is_at_least_as_good_as_recency_on_a_zipf_trace_with_scans() -> None:
    """Same bytes, ghosts included, same 50,000 requests: the share that is found is higher than that of LRU."""
    trace = _trace(np.random.default_rng(20_261_130))
    for entries in (150, 300, 600):
        recency = Lru(entries)
        found = sum(recency.request(number, 1) for number in trace)
        cache = _cache(entries * (_EMPTY + 8))
        for number in trace:
            if cache.get(number) is None:
                cache.put(number, b"8 bytes!")
        assert cache.hits > found


def _trace(random: np.random.Generator) -> list[int]:
    """Returns keys by Zipf's law with exponent 1, a scan of 500 fresh keys after each 2,000."""
    popularity = 1.0 / np.arange(1, 5001)
    drawn = random.choice(5000, 40_000, p=popularity / popularity.sum())
    fresh = iter(range(10_000, 1_000_000))
    trace: list[int] = []
    for start in range(0, len(drawn), 2000):
        trace += [*drawn[start : start + 2000].tolist(), *(next(fresh) for _ in range(500))]
    return trace
