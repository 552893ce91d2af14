"""Values that wait to be written, and the task that writes them: a request never waits for a write."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from retrieval.caching.envelope import Envelopes
from retrieval.caching.keys import CacheKey
from retrieval.caching.redis.breaker import Breaker
from retrieval.caching.redis.calls import RedisCalls, RedisUnavailable, Write
from retrieval.caching.redis.seldom import Seldom

BATCH_COUNT = 64
BATCH_BYTES = 1 << 20
_IN_THREAD_ABOVE_BYTES = 64 << 10  # about a millisecond of compressing
_JITTER = 0.1

_log = structlog.get_logger("headrace")


@dataclass(frozen=True, slots=True)
class Pending:
    """A value that waits; `ttl_s` is from when it is written."""

    key: CacheKey
    name: bytes
    value: bytes
    stored_at_s: float
    ttl_s: float


class WriteQueue:
    """Values by name, in the order they came, bounded in number and bytes; a newer one takes an older one's place."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: OrderedDict[bytes, Pending] = OrderedDict()
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def offer(self, pending: Pending) -> bool:
        """Takes the value unless the queue is full, which it tells."""
        self.discard(pending.name)
        if len(self._waiting) >= self._max_count or self._bytes + len(pending.value) > self._max_bytes:
            return False
        self._waiting[pending.name] = pending
        self._bytes += len(pending.value)
        self._filled.set()
        return True

    def discard(self, name: bytes) -> None:
        """Forgets the value of that name, if it waits."""
        pending = self._waiting.pop(name, None)
        if pending is not None:
            self._bytes -= len(pending.value)

    def discard_where(self, condition: Callable[[Pending], bool]) -> int:
        """Forgets the values for which the condition holds, and returns how many."""
        chosen = [name for name, pending in self._waiting.items() if condition(pending)]
        for name in chosen:
            self.discard(name)
        return len(chosen)

    async def take(self) -> list[Pending]:
        """Waits for values and takes a batch of the oldest."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        batch: list[Pending] = []
        size = 0
        while self._waiting and len(batch) < BATCH_COUNT and size < BATCH_BYTES:
            pending = self._waiting[next(iter(self._waiting))]
            self.discard(pending.name)
            batch.append(pending)
            size += len(pending.value)
        return batch


class Writer:
    """Writes what waits, batch after batch. `writes` and `dropped` count values."""

    def __init__(self, queue: WriteQueue, calls: RedisCalls, breaker: Breaker, envelopes: Envelopes) -> None:
        self._queue = queue
        self._calls = calls
        self._breaker = breaker
        self._envelopes = envelopes
        self._idle = asyncio.Event()
        self._idle.set()
        self._busy = asyncio.Lock()  # held while a batch is under way
        self.writes = 0
        self.dropped = 0
        self._seldom = Seldom()

    async def run(self) -> None:
        """Writes until it is cancelled."""
        while True:
            if not len(self._queue):
                self._idle.set()
            batch = await self._queue.take()
            self._idle.clear()
            async with self._busy:
                written = 0 if self._breaker.is_open else await self._write(batch)
            self.writes += written
            self.dropped += len(batch) - written
            if written < len(batch) and not self._breaker.is_open and self._seldom.due():
                _log.warning("redis_writes_refused", dropped=self.dropped)  # it is full, as a rule

    async def wait_idle(self) -> None:
        """Waits until nothing waits and nothing is under way."""
        while len(self._queue) or not self._idle.is_set():
            self._idle.clear()
            await self._idle.wait()

    async def settle(self) -> None:
        """Waits until the batch that is under way, if there is one, has been written."""
        async with self._busy:
            return

    async def _write(self, batch: Sequence[Pending]) -> int:
        writes = await self._seal(batch)
        try:
            return await self._calls.write(writes)
        except RedisUnavailable:
            self._breaker.fail()
            return 0

    async def _seal(self, batch: Sequence[Pending]) -> list[Write]:
        """Compressing and encrypting much goes to a thread, where both let go of the interpreter."""
        if sum(len(pending.value) for pending in batch) > _IN_THREAD_ABOVE_BYTES:
            return await asyncio.to_thread(self._sealed, batch)
        return self._sealed(batch)

    def _sealed(self, batch: Sequence[Pending]) -> list[Write]:
        return [
            Write(
                pending.name,
                self._envelopes.seal(pending.key, pending.value, pending.stored_at_s),
                jittered_ms(pending.ttl_s),
            )
            for pending in batch
        ]


def jittered_ms(ttl_s: float) -> int:
    """Returns the time to live in milliseconds, up to a tenth more or less, so that what came together ends apart."""
    return max(1, round(1000 * ttl_s * random.uniform(1 - _JITTER, 1 + _JITTER)))  # noqa: S311, nothing secret
