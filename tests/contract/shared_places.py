"""Where the contract of the shared tier is tried: every topology of Redis, and no tier at all."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import trustme

from retrieval.caching.envelope import Cipher
from retrieval.caching.redis.options import RedisOptions, TlsOptions, options_from_url
from retrieval.caching.redis.tier import RedisTier, open_redis_tier
from tests.fakes.redis_server import HOST, RedisServer, running_cluster, running_sentinel
from tests.fakes.tcp_proxy import running_proxy

SERVICE = "headrace"
WAIT_S = 20.0
_prefixes = (f"t{number}" for number in count())


@dataclass(frozen=True)
class Place:
    """Servers that are up, and how to reach them; TLS is ended before the server by the test."""

    options: RedisOptions
    servers: list[RedisServer]
    authority: trustme.CA | None = None

    def fresh(self) -> RedisOptions:
        """Returns options under which nothing is stored yet, with time enough for a busy machine."""
        return replace(self.options, key_prefix=next(_prefixes), budget_ms=1000.0)


@contextmanager
def standalone() -> Iterator[Place]:
    """Gives one server."""
    with RedisServer() as server:
        yield Place(options_from_url(server.url), [server])


@contextmanager
def encrypted() -> Iterator[Place]:
    """Gives one server behind TLS."""
    with RedisServer() as server:
        yield Place(options_from_url(server.url), [server], trustme.CA())


@contextmanager
def behind_sentinel() -> Iterator[Place]:
    """Gives one server and a Sentinel that knows it."""
    with RedisServer() as server, running_sentinel(server.port, SERVICE) as sentinel:
        yield Place(options_from_url(f"redis+sentinel://{HOST}:{sentinel.port}/{SERVICE}"), [server])


@contextmanager
def cluster() -> Iterator[Place]:
    """Gives three primaries."""
    with running_cluster() as nodes:
        yield Place(options_from_url(f"redis+cluster://{HOST}:{nodes[0].port},{HOST}:{nodes[1].port}"), nodes)


PLACES = {"redis": standalone, "tls": encrypted, "sentinel": behind_sentinel, "cluster": cluster}


@asynccontextmanager
async def opened(
    place: Place, folder: Path, cipher: Cipher | None = None, options: RedisOptions | None = None
) -> AsyncIterator[RedisTier]:
    """Gives a tier that has found its servers."""
    async with reachable(place, options or place.fresh(), folder) as used:
        tier = open_redis_tier(used, cipher)
        try:
            assert await tier.available_within(WAIT_S)
            yield tier
        finally:
            await tier.close()


@asynccontextmanager
async def reachable(place: Place, options: RedisOptions, folder: Path) -> AsyncIterator[RedisOptions]:
    """Gives options that lead to the server, through a proxy that ends TLS where the place wants it."""
    if place.authority is None:
        yield options
        return
    ca_file = folder / "ca.pem"
    place.authority.cert_pem.write_to_path(str(ca_file))
    async with running_proxy(place.servers[0].port, server_context(place.authority)) as proxy:
        url = options_from_url(f"rediss://{HOST}:{proxy.port}")
        yield replace(options, nodes=url.nodes, tls=TlsOptions(ca_file=str(ca_file)))


def server_context(authority: trustme.CA) -> ssl.SSLContext:
    """Returns a context for a server on loopback that the authority vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    return context
