"""The Redis of the simulation: a real server behind a proxy that fails, with values that somebody tampers with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from bench._common.redis_server import HOST, RedisServer
from bench._common.tcp_proxy import TcpProxy, running_proxy
from retrieval.caching.keys import Purpose

_TAMPERED_AT_ONCE = 30
_PURPOSES = tuple(one.value.encode() for one in (Purpose.EMBEDDING, Purpose.RESULT, Purpose.ANSWER))
_FLIPPED = 0x20


class SharedRedis:
    """One Redis for all replicas, and all that can happen to it."""

    def __init__(self, server: RedisServer, proxy: TcpProxy, random: Random) -> None:
        self.faulty = False
        self._server = server
        self._proxy = proxy
        self._random = random
        self._snapshot: dict[bytes, bytes] = {}
        self._suspended = False

    @property
    def url(self) -> str:
        """Where the replicas reach it: at the proxy."""
        return f"redis://{HOST}:{self._proxy.port}"

    async def fail(self) -> str:
        """Lets one thing go wrong, which holds until `heal`, and names it."""
        faults: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "delayed": self._delay,
            "stalled": self._stall,
            "suspended": self._suspend,
            "cut": self._cut,
            "reset": self._reset,
            "refused": self._proxy.refuse,
            "garbage replies": self._answer_garbage,
            "shifted replies": self._shift_replies,
            "restarted empty": self._restart_empty,
            "restarted with old data": self._restart_old,
        }
        name = self._random.choice(list(faults))
        await faults[name]()
        return name

    async def heal(self) -> None:
        """Ends every fault."""
        if self._suspended:
            self._server.resume()
            self._suspended = False
        self._proxy.heal()
        await self._proxy.refuse()
        await self._proxy.accept()
        self.faulty = False

    def remember(self) -> None:
        """Keeps a copy of all values, to be brought back later."""
        if not self._suspended:
            self._snapshot = self._values()

    def tamper(self) -> str:
        """Changes some values in place, and names how."""
        if self._suspended:
            return "tampered with nothing"
        values = self._values()
        kind = self._random.choice(("overwritten", "cut short", "flipped", "exchanged", "put back"))
        purpose = self._random.choice(_PURPOSES)  # a value under another's key does most harm when it is of its kind
        chosen = [name for name in sorted(values) if name.split(b":")[2] == purpose]
        names = self._random.sample(chosen, min(_TAMPERED_AT_ONCE, len(chosen)))
        with self._server.client() as client:
            for name, other in zip(names, [*names[1:], *names[:1]], strict=True):
                client.set(name, self._spoiled(kind, values[name], values[other], self._snapshot.get(name)))
        return f"values {kind}"

    def _spoiled(self, kind: str, value: bytes, other: bytes, old: bytes | None) -> bytes:
        if kind == "overwritten":
            return self._random.randbytes(self._random.randrange(200))
        if kind == "cut short":
            return value[: self._random.randrange(len(value) + 1)]
        if kind == "exchanged":
            return other
        if kind == "put back":
            return value if old is None else old
        at = self._random.randrange(max(1, len(value)))
        return value[:at] + bytes(byte ^ _FLIPPED for byte in value[at : at + 1]) + value[at + 1 :]

    def _values(self) -> dict[bytes, bytes]:
        with self._server.client() as client:
            names: list[Any] = list(client.scan_iter(count=1000))
            values: Any = client.mget(names) if names else []
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    async def _delay(self) -> None:
        self._proxy.faults.delay_s = self._random.choice((0.001, 0.004, 0.03))
        self.faulty = True

    async def _stall(self) -> None:
        self._proxy.stall()
        self.faulty = True

    async def _suspend(self) -> None:
        self._server.suspend()
        self._suspended = self.faulty = True

    async def _cut(self) -> None:
        self._proxy.faults.cut_after_bytes = self._random.randrange(200)
        self.faulty = True

    async def _reset(self) -> None:
        await self._proxy.drop(reset=True)

    async def _answer_garbage(self) -> None:
        self._proxy.faults.garbage = self._random.choice((b"$-1\r\n", b"+OK\r\n", b"\x00\xff", b":7\r\n" * 3))
        self.faulty = True

    async def _shift_replies(self) -> None:
        self._proxy.faults.extra = self._random.choice((b"+OK\r\n", b"*1\r\n$-1\r\n", b"$3\r\nabc\r\n"))

    async def _restart_empty(self) -> None:
        await asyncio.to_thread(self._server.kill)
        await asyncio.to_thread(self._server.start)

    async def _restart_old(self) -> None:
        await self._restart_empty()
        with self._server.client() as client:
            if self._snapshot:
                client.mset(dict[Any, Any](self._snapshot))


@asynccontextmanager
async def running_shared_redis(random: Random) -> AsyncIterator[SharedRedis]:
    """Gives a Redis that works."""
    server = RedisServer()
    await asyncio.to_thread(server.start)
    try:
        async with running_proxy(server.port) as proxy:
            yield SharedRedis(server, proxy, random)
    finally:
        await asyncio.to_thread(server.close)
