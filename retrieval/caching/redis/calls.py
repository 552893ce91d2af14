"""The few calls that the tier makes to Redis, alike for every topology, with one kind of error.

All are pipelines without a transaction, so that a cluster can take them: redis-py splits them by node and waits for the
nodes together. Reads go to primaries only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.exceptions import RedisClusterException, RedisError, ResponseError

from retrieval.caching.redis.connecting import Client, connect, tls_context
from retrieval.caching.redis.options import RedisOptions

PAGE_COUNT = 500  # keys that one SCAN looks at: under a millisecond of the server
# Where redis-py trusts a reply to be of the right type and shape; uvloop raises the last for a closed connection.
_STUMBLES = (ValueError, EOFError, LookupError, TypeError, AttributeError, RuntimeError)
_CALL_S = 1.0  # what a call may take that no request waits for


class RedisUnavailable(Exception):
    """Redis cannot be reached, took too long, refuses, or answers what is no answer."""


@dataclass(frozen=True, slots=True)
class Write:
    """A value to be stored under a name for some time."""

    name: bytes
    value: bytes
    ttl_ms: int


class RedisCalls:
    """Calls to Redis through one client, which can be replaced by a fresh one."""

    def __init__(self, options: RedisOptions) -> None:
        """Reads the certificates and opens no connection.

        Raises:
            RedisOptionsError: when a certificate cannot be read.
        """
        self._options = options
        self._context = None if options.tls is None else tls_context(options.tls)
        self._client: Client = connect(options, self._context)
        self._former: list[Client] = []  # not closed yet

    async def read(self, names: Sequence[bytes], limit_s: float) -> list[bytes | RedisError | None]:
        """Returns what is stored under each name; an error where it is no string, None where there is nothing.

        Raises:
            RedisUnavailable: when not all could be read within `limit_s`.
        """
        replies = await self._run([("GET", name) for name in names], limit_s)
        for reply in replies:
            if isinstance(reply, Exception) and not _is_wrong_type(reply):
                raise RedisUnavailable(str(reply))
        return [reply if isinstance(reply, bytes | RedisError) else None for reply in replies]

    async def write(self, writes: Sequence[Write]) -> int:
        """Stores the values and returns how many were; a full server, for one, refuses some.

        Raises:
            RedisUnavailable: when Redis could not be asked.
        """
        replies = await self._run([("SET", write.name, write.value, "PX", write.ttl_ms) for write in writes], _CALL_S)
        for reply in replies:  # a refusal leaves the connection well; in a cluster, lost connections are replies too
            if isinstance(reply, Exception) and not isinstance(reply, ResponseError):
                raise RedisUnavailable(str(reply))
        return sum(reply is True for reply in replies)

    async def unlink(self, names: Sequence[bytes]) -> int:
        """Deletes the names and returns how many were there.

        Raises:
            RedisUnavailable: when not all could be deleted.
        """
        replies = await self._run([("UNLINK", name) for name in names], _CALL_S)
        counts = [reply for reply in replies if isinstance(reply, int)]
        if len(counts) != len(names):
            raise RedisUnavailable("not everything could be deleted")
        return sum(counts)

    async def read_starts(self, names: Sequence[bytes], length: int) -> list[bytes]:
        """Returns the first bytes of each value; none where it is no string.

        Raises:
            RedisUnavailable: when Redis could not be asked.
        """
        replies = await self._run([("GETRANGE", name, 0, length - 1) for name in names], _CALL_S)
        return [reply if isinstance(reply, bytes) else b"" for reply in replies]

    async def scan(self, pattern: bytes) -> AsyncGenerator[list[bytes], None]:
        """Gives the names that match, page by page, from all primaries.

        Raises:
            RedisUnavailable: when a server could not be asked.
        """
        async with self._client.borrowed() as commands:
            for node in _primaries(commands):
                cursor = 0
                while True:
                    cursor, names = await _scan_page(node, cursor, pattern)
                    yield names
                    if cursor == 0:
                        break

    async def probe(self, within_s: float) -> None:
        """Connects anew and asks every primary for a sign of life, which must then come within the given seconds.

        A fresh client, since the old one's connections may lead nowhere, or hold replies to questions nobody waits for.

        Raises:
            RedisUnavailable: when there is none.
        """
        self._former.append(self._client)
        self._client = connect(self._options, self._context)
        try:
            async with self._client.borrowed() as commands:
                with translated():
                    async with asyncio.timeout(_CALL_S):
                        if isinstance(commands, RedisCluster):
                            await commands.initialize()
                        await _ping(commands)
                    async with asyncio.timeout(within_s):
                        await _ping(commands)
        finally:
            await self._retire_former()

    async def close(self) -> None:
        """Closes all connections."""
        await self._retire_former()
        await self._client.retire()

    async def _retire_former(self) -> None:
        while self._former:
            await self._former[-1].retire()
            self._former.pop()

    async def _run(self, calls: Sequence[tuple[str | bytes | int, ...]], limit_s: float) -> list[object]:
        """Returns the replies to the calls, errors among them."""
        if not calls:
            return []
        async with self._client.borrowed() as commands:
            pipe = commands.pipeline(transaction=False)
            for call in calls:
                pipe.execute_command(*call)
            with translated():
                async with asyncio.timeout(limit_s):
                    replies: list[object] = await pipe.execute(raise_on_error=False)
                    return replies


@contextmanager
def translated() -> Iterator[None]:
    """Turns what the library raises into our error: its own, the system's, and what it stumbles over in garbage."""
    try:
        yield
    except (RedisError, RedisClusterException, OSError, *_STUMBLES) as error:
        raise RedisUnavailable(f"{type(error).__name__}: {error}") from error


def _primaries(commands: Redis | RedisCluster) -> Sequence[Redis | ClusterNode]:
    return [commands] if isinstance(commands, Redis) else commands.get_primaries()


async def _ping(commands: Redis | RedisCluster) -> None:
    """A node of a cluster answers PING also while it refuses all else, so it is asked for the cluster's state."""
    if isinstance(commands, Redis):
        well = await commands.ping() is True
    else:
        states = [await node.execute_command("CLUSTER INFO") for node in commands.get_primaries()]
        well = all(isinstance(state, dict) and state.get("cluster_state") == "ok" for state in states)
    if not well:
        raise RedisUnavailable("it answers, but not that it is well")


async def _scan_page(node: Redis | ClusterNode, cursor: int, pattern: bytes) -> tuple[int, list[bytes]]:
    with translated():
        async with asyncio.timeout(_CALL_S):
            following, names = await _scan(node, cursor, pattern)
            return int(following), list(names)


def _scan(node: Redis | ClusterNode, cursor: int, pattern: bytes) -> Awaitable[tuple[int, list[bytes]]]:
    command = ("SCAN", cursor, "MATCH", pattern, "COUNT", PAGE_COUNT)
    reply: Awaitable[tuple[int, list[bytes]]] = node.execute_command(*command)
    return reply


def _is_wrong_type(reply: Exception) -> bool:
    return isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE")
