"""Lua scripts on Redis: each runs whole or not at all, within a time limit, on any topology.

A script whose reply is lost may have run. Its caller hears that Redis is unavailable and asks again, so every script
has to bear being run twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from redis.exceptions import ConnectionError, NoScriptError  # noqa: A004 - the library's own

from retrieval.caching.redis.calls import translated
from retrieval.caching.redis.connecting import Client, connect, tls_context
from retrieval.caching.redis.options import RedisOptions

Value: TypeAlias = str | bytes | int | float


@dataclass(frozen=True)
class Script:
    """A script; all the keys that it uses begin with the key that it is called with, and lie in that one's slot."""

    source: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest())


@dataclass(frozen=True, slots=True)
class Call:
    """A script with its key and arguments."""

    script: Script
    key: str
    arguments: Sequence[Value] = ()


class RedisScripts:
    """Runs scripts through one client, which is replaced by a fresh one whenever it fails."""

    def __init__(self, options: RedisOptions, limit_s: float) -> None:
        """Reads the certificates and opens no connection. No call takes longer than `limit_s`.

        Raises:
            RedisOptionsError: when a certificate cannot be read.
        """
        self._options = options
        self._limit_s = limit_s
        self._context = None if options.tls is None else tls_context(options.tls)
        self._client: Client | None = None
        self._lanes = asyncio.Semaphore(options.max_connections)

    async def run(self, script: Script, key: str, *arguments: Value) -> object:
        """Returns the script's reply.

        Raises:
            RedisUnavailable: when there was none in time, or an error.
        """
        return (await self.run_all([Call(script, key, arguments)]))[0]

    async def run_all(self, calls: Sequence[Call]) -> list[object]:
        """Returns the scripts' replies; each script is whole, the calls together are not.

        Raises:
            RedisUnavailable: when not all replied in time, or one with an error.
        """
        with translated():
            async with asyncio.timeout(self._limit_s), self._lanes:
                try:
                    return await self._replies(calls)
                except ConnectionError:  # the server may have closed it long ago, when it was started again, say
                    return await self._replies(calls)

    async def close(self) -> None:
        """Closes all connections; a second call does nothing."""
        await self._retire()

    async def _replies(self, calls: Sequence[Call]) -> list[object]:
        """Returns the replies; a script that the server does not know is sent to it. Raises: RedisError."""
        replies = await self._send([("EVALSHA", one.script.digest, *_rest(one)) for one in calls])
        unknown = [number for number, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        again = await self._send([("EVAL", calls[one].script.source, *_rest(calls[one])) for one in unknown])
        for number, reply in zip(unknown, again, strict=True):
            replies[number] = reply
        for reply in replies:
            if isinstance(reply, Exception):  # in a cluster, lost connections are replies too
                await self._retire()
                raise reply
        return replies

    async def _send(self, commands: Sequence[tuple[Value, ...]]) -> list[object]:
        if not commands:
            return []
        if self._client is None:
            self._client = connect(self._options, self._context)
        client = self._client
        try:
            async with client.borrowed() as redis:
                pipe = redis.pipeline(transaction=False)
                for command in commands:
                    pipe.execute_command(*command)
                replies: list[object] = await pipe.execute(raise_on_error=False)
                return replies
        except BaseException:  # its connections may lead nowhere, or hold replies that nobody waits for
            if self._client is client:
                await self._retire()
            raise

    async def _retire(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.retire()


def _rest(call: Call) -> tuple[Value, ...]:
    return (1, call.key, *call.arguments)
