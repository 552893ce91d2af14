"""Clients of redis-py for one server, for Sentinels and for a cluster, with nothing on that could wait by itself.

Found in redis-py 8.1, and turned off here:
- Every client retries ten times with pauses of up to a second; a cluster's pipeline sleeps 0.25 s between its tries.
  Sentinel clients do so too, unless told otherwise by arguments of their own.
- Each new connection sends CLIENT SETINFO twice, and with RESP3, the default, HELLO and an attempt at maintenance
  notifications, which can raise time limits while a server moves: three round trips before the first GET. RESP2 with
  `driver_info=None` sends nothing but AUTH and SELECT.
- A `socket_timeout` wraps each write in a task of its own (`wait_for`). One time limit around the whole call is
  cheaper, and safe: a read or write that is cancelled closes its connection, whatever it was cancelled by.
- Each TLS connection builds a context of its own, which reads the system's authorities and the given file: 30 ms in
  which the event loop stands still. Here all share one, also where the library has no argument for it.
- A cluster's client replaces the configured seeds by the nodes that it found (`dynamic_startup_nodes`), so a cluster
  that comes back elsewhere would not be found again.
- Pools raise when they are used up (only one kind waits, and not for Sentinels or a cluster), so the tier counts its
  own calls and never asks for more than there are.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import Connection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool, SentinelManagedConnection
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from retrieval.caching.redis.options import Node, RedisOptions, RedisOptionsError, TlsOptions, Topology

SPARE_CONNECTIONS = 3  # for the writer, the probe and one invalidation, beside the look-ups


class Client:
    """A client, and the Sentinels that it asks where the primary is."""

    def __init__(self, commands: Redis | RedisCluster, sentinels: Sentinel | None = None) -> None:
        self._commands = commands
        self._sentinels = sentinels
        self._users = 0
        self._retired = False

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[Redis | RedisCluster]:
        """Gives the commands, for calls that a retirement lets come to their end."""
        self._users += 1
        try:
            yield self._commands
        finally:
            self._users -= 1
            await self._close_if_done()

    async def retire(self) -> None:
        """Closes all connections once no call uses them any more.

        Not under a call: redis-py would connect anew for it, and nobody would close that connection.
        """
        self._retired = True
        await self._close_if_done()

    async def _close_if_done(self) -> None:
        """Closes what can be closed; a connection whose farewell fails is gone all the same."""
        if self._users or not self._retired:
            return
        with suppress(RedisError, OSError):
            await self._commands.aclose()
        if self._sentinels is not None:
            with suppress(RedisError, OSError):
                await self._sentinels.aclose()


class _SharedContext(SSLConnection):
    """A TLS connection whose context was made before."""

    def __init__(self, *, made: ssl.SSLContext, **rest: Any) -> None:
        super().__init__(**rest)
        self.ssl_context.context = made


class _ManagedSharedContext(SentinelManagedConnection, _SharedContext):
    """The same behind Sentinels."""


def connect(options: RedisOptions, context: ssl.SSLContext | None) -> Client:
    """Returns a client that has not connected yet; `context` is for TLS."""
    if options.topology is Topology.CLUSTER:
        return Client(_cluster(options, context))
    if options.topology is Topology.SENTINEL:
        return _behind_sentinels(options, context)
    return Client(_single(options.nodes[0], options.max_connections + SPARE_CONNECTIONS, _settings(options, context)))


def tls_context(options: TlsOptions) -> ssl.SSLContext:
    """Returns a context that trusts the given authorities, or the system's.

    Raises:
        RedisOptionsError: when a file cannot be read or does not hold what it should.
    """
    field = "tls.ca_file"
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        field = "tls.cert_file"
        if options.cert_file is not None:
            context.load_cert_chain(options.cert_file, options.key_file)
    except OSError as error:
        file = options.ca_file if field == "tls.ca_file" else options.cert_file
        raise RedisOptionsError(
            field, f"{file}: {error.strerror or error}; name a PEM file that can be read"
        ) from error
    if not options.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _single(node: Node, max_connections: int, settings: dict[str, Any]) -> Redis:
    kind = _SharedContext if "made" in settings else Connection
    return Redis.from_pool(ConnectionPool(kind, max_connections, host=node.host, port=node.port, **settings))


def _behind_sentinels(options: RedisOptions, context: ssl.SSLContext | None) -> Client:
    """The Sentinels are spoken to with TLS when the servers are."""
    theirs = _bare(options, context) | {"username": options.sentinel_username, "password": options.sentinel_password}
    sentinels = Sentinel([])  # type: ignore[no-untyped-call]
    sentinels.sentinels = [_single(node, options.max_connections + SPARE_CONNECTIONS, theirs) for node in options.nodes]
    pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]
        options.sentinel_service,
        sentinels,
        connection_class=_ManagedSharedContext if context else SentinelManagedConnection,
        max_connections=options.max_connections + SPARE_CONNECTIONS,
        **_settings(options, context),
    )
    return Client(Redis.from_pool(pool), sentinels)


def _cluster(options: RedisOptions, context: ssl.SSLContext | None) -> RedisCluster:
    cluster = RedisCluster(
        startup_nodes=[ClusterNode(node.host, node.port) for node in options.nodes],
        dynamic_startup_nodes=False,
        max_connections=options.max_connections + SPARE_CONNECTIONS,
        username=options.username,
        password=options.password,
        **_bare(options, None),
    )
    if context is not None:
        cluster.connection_kwargs |= {"connection_class": _SharedContext, "made": context}  # of nodes found later
        for node in cluster.nodes_manager.startup_nodes.values():
            node.connection_class = _SharedContext
            node.connection_kwargs["made"] = context
    return cluster


def _settings(options: RedisOptions, context: ssl.SSLContext | None) -> dict[str, Any]:
    theirs = {"username": options.username, "password": options.password, "db": options.database}
    return _bare(options, context) | theirs


def _bare(options: RedisOptions, context: ssl.SSLContext | None) -> dict[str, Any]:
    """What every client and connection is given: no retries, no greetings, a time limit on connecting alone."""
    bare = {
        "protocol": 2,
        "driver_info": None,
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": None,
        "socket_connect_timeout": options.connect_timeout_ms / 1000,
    }
    return bare if context is None else bare | {"made": context}
