"""The shared tier on Redis: what it finds in time counts, whatever else happens is a miss."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing

import structlog

from retrieval.caching.envelope import HEADER_BYTES, Cipher, Envelopes, belongs_to_another, read_header
from retrieval.caching.keys import CacheKey
from retrieval.caching.redis.breaker import Breaker, probe_while_open
from retrieval.caching.redis.calls import RedisCalls, RedisUnavailable
from retrieval.caching.redis.in_time import InTime
from retrieval.caching.redis.naming import redis_name, redis_pattern, takes
from retrieval.caching.redis.options import RedisOptions
from retrieval.caching.redis.seldom import Seldom
from retrieval.caching.redis.writing import Pending, WriteQueue, Writer
from retrieval.caching.shared import Found, Selection, SharedStats, Stored

_SLOW_READ_S = 0.1  # how long a read may go on that nobody waits for any more
_IN_THREAD_ABOVE_BYTES = 256 << 10  # about a millisecond of checking and decompressing

_log = structlog.get_logger("headrace")


def open_redis_tier(options: RedisOptions, cipher: Cipher | None = None, compress_above_bytes: int = 1024) -> RedisTier:
    """Opens the tier without waiting for Redis: until a first probe has succeeded it is unavailable.

    Runs inside an event loop; `RedisTier.close` ends what this starts.

    Raises:
        RedisOptionsError: when a certificate cannot be read.
    """
    return RedisTier(options, Envelopes(cipher, compress_above_bytes))


class RedisTier:
    """Values in Redis, in envelopes; see `SharedTier`."""

    def __init__(self, options: RedisOptions, envelopes: Envelopes) -> None:
        self.prefix = options.key_prefix  # of the names in Redis
        self._envelopes = envelopes
        self._budget_s = options.budget_ms / 1000
        self._calls = RedisCalls(options)
        self._breaker = Breaker(options.failures_to_open)
        self._in_time = InTime(self._breaker, self._budget_s, options.max_connections)
        self._queue = WriteQueue(options.queue_count, options.queue_bytes)
        self._writer = Writer(self._queue, self._calls, self._breaker, envelopes)
        self._sweeping = asyncio.Lock()
        self._lookups = self._hits = self._damaged = self._refused = 0
        self._servers = options.shown
        self._reason = ""  # why the last probe failed
        self._closed = False
        self._seldom = Seldom()
        self._tasks = (
            asyncio.create_task(probe_while_open(self._breaker, self._probe)),
            asyncio.create_task(self._writer.run()),
        )

    async def get_many(self, keys: Sequence[CacheKey]) -> Found:
        """Reads the values in one round trip, within the budget. Never raises but for cancellation."""
        if not keys:
            return Found([], available=not self._breaker.is_open)
        self._lookups += len(keys)
        values = None if self._breaker.is_open else await self._in_time.run(lambda: self._read(keys))
        if values is None:
            return Found([None] * len(keys), available=False)
        self._hits += sum(value is not None for value in values)
        return Found(values, available=True)

    def put(self, key: CacheKey, value: bytes, ttl_s: float) -> None:
        """Takes a value to be written soon. Drops it when too many wait, it is too large, or Redis is unavailable."""
        name = redis_name(self.prefix, key)
        if self._breaker.is_open or len(value) > self._envelopes.max_value_bytes or ttl_s <= 0:
            self._queue.discard(name)  # an older value must not be written after a newer one was dropped
            self._refused += 1
        elif not self._queue.offer(Pending(key, name, value, time.time(), ttl_s)):
            self._refused += 1

    async def delete(self, keys: Sequence[CacheKey]) -> bool:
        """Forgets the values, within the budget; False when it could not: they end by their time to live."""
        names = [redis_name(self.prefix, key) for key in keys]
        for name in names:
            self._queue.discard(name)
        return not self._breaker.is_open and await self._in_time.run(lambda: self._unlink(names)) is not None

    async def invalidate(self, selection: Selection) -> int | None:
        """Forgets the selected values, those that wait to be written too; None when Redis is unavailable."""
        before_s = None if selection.older_than_s is None else time.time() - selection.older_than_s
        waiting = self._queue.discard_where(
            lambda pending: takes(selection, pending.key) and (before_s is None or pending.stored_at_s < before_s)
        )
        if self._breaker.is_open:
            return None
        try:
            async with self._sweeping:
                await self._writer.settle()
                return waiting + await self._sweep(redis_pattern(self.prefix, selection), before_s)
        except RedisUnavailable:
            self._breaker.fail()
            return None

    def stats(self) -> SharedStats:
        """Returns how the tier does."""
        return SharedStats(
            "redis",
            available=not self._breaker.is_open,
            lookups=self._lookups,
            hits=self._hits,
            damaged=self._damaged,
            writes=self._writer.writes,
            dropped_writes=self._writer.dropped + self._refused,
            failures=self._in_time.failures,
        )

    async def available_within(self, seconds: float) -> bool:
        """Waits until Redis is available, and tells whether it came to that."""
        try:
            async with asyncio.timeout(seconds):
                await self._breaker.wait_closed()
        except TimeoutError:
            return False
        return True

    async def flush(self) -> None:
        """Waits until what was put has been written or dropped."""
        await self._writer.wait_idle()

    async def close(self) -> None:
        """Ends background work and connections; a second call does nothing. What waits to be written is dropped."""
        if self._closed:
            return
        self._closed = True
        self._breaker.open()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._in_time.close()
        await self._calls.close()

    async def _probe(self) -> bool:
        try:
            await self._calls.probe(self._budget_s)
        except RedisUnavailable as error:
            if str(error) != self._reason:
                self._reason = str(error)
                _log.warning("redis_probe_failed", servers=self._servers, reason=self._reason)
            return False
        self._reason = ""
        return True

    async def _read(self, keys: Sequence[CacheKey]) -> list[Stored | None]:
        names = [redis_name(self.prefix, key) for key in keys]
        replies = await self._calls.read(names, self._budget_s + _SLOW_READ_S)
        contents = [reply if isinstance(reply, bytes) else b"" for reply in replies]
        if sum(map(len, contents)) > _IN_THREAD_ABOVE_BYTES:
            values = await asyncio.to_thread(self._open_all, keys, contents)
        else:
            values = self._open_all(keys, contents)
        for key, reply, value in zip(keys, replies, values, strict=True):
            if reply is not None and value is None:
                self._note_damage(key, reply)
        return values

    def _open_all(self, keys: Sequence[CacheKey], contents: Sequence[bytes]) -> list[Stored | None]:
        return [self._envelopes.open(key, content) for key, content in zip(keys, contents, strict=True)]

    def _note_damage(self, key: CacheKey, reply: bytes | Exception) -> None:
        """Counts it. Another key's value may be the reply to another question: then no connection can be trusted."""
        self._damaged += 1
        if isinstance(reply, bytes) and belongs_to_another(key, reply):
            _log.warning("redis_reply_of_another_key", purpose=key.purpose.name)
            self._breaker.open()
        elif self._seldom.due():
            _log.warning("redis_values_damaged", damaged=self._damaged)  # changed, or encrypted with an unknown key

    async def _unlink(self, names: Sequence[bytes]) -> int:
        try:
            async with asyncio.timeout(self._budget_s):
                await self._writer.settle()  # or a value that is on its way would arrive after its deletion
        except TimeoutError as error:
            raise RedisUnavailable("a write did not end in time") from error
        return await self._calls.unlink(names)

    async def _sweep(self, pattern: bytes, before_s: float | None) -> int:
        count = 0
        async with aclosing(self._calls.scan(pattern)) as pages:
            async for names in pages:
                chosen = names if before_s is None else await self._older(names, before_s)
                count += await self._calls.unlink(chosen)
        return count

    async def _older(self, names: Sequence[bytes], before_s: float) -> list[bytes]:
        """Returns the names of values stored before then, and of those that do not say when."""
        starts = await self._calls.read_starts(names, HEADER_BYTES)
        headers = [read_header(start) for start in starts]
        return [
            name for name, header in zip(names, headers, strict=True) if header is None or header.stored_at_s < before_s
        ]
