"""What is particular to TLS: whom the tier trusts, and that it speaks it to every server of every topology."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from retrieval.caching.redis.options import Node, RedisOptions, TlsOptions, Topology
from retrieval.caching.redis.tier import RedisTier, open_redis_tier
from tests.fakes.cache_keys import cache_key
from tests.fakes.redis_server import HOST, RedisServer, running_cluster, running_sentinel
from tests.fakes.tcp_proxy import running_proxy

SERVICE = "headrace"
TTL_S = 600.0
WAIT_S = 30.0
BUDGET_MS = 2000.0  # that a busy machine keeps


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Is a server without TLS."""
    with RedisServer() as running:
        yield running


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Is who vouches for the server, and for the client where the server asks."""
    return trustme.CA()


@asynccontextmanager
async def _opened(options: RedisOptions) -> AsyncIterator[RedisTier]:
    tier = open_redis_tier(replace(options, budget_ms=BUDGET_MS))
    try:
        yield tier
    finally:
        await tier.close()


async def _holds(tier: RedisTier, name: object = 0) -> bool:
    """Puts a value and tells whether it is found."""
    tier.put(cache_key(name), b"value", TTL_S)
    await tier.flush()
    (found,) = (await tier.get_many([cache_key(name)])).values
    return found is not None and found.value == b"value"


def _context(authority: trustme.CA, name: str = HOST, *, client_too: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    if client_too:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


def _written(folder: Path, name: str, blob: trustme.Blob) -> str:
    path = folder / name
    blob.write_to_path(str(path))
    return str(path)


@pytest.mark.parametrize("verify", [True, False])
async def test_tier_trusts_only_the_given_authority(
    server: RedisServer, authority: trustme.CA, tmp_path: Path, verify: bool
) -> None:
    """A server that another authority vouches for is unavailable, unless nobody is asked to verify."""
    ca_file = _written(tmp_path, "ca.pem", trustme.CA().cert_pem)
    async with running_proxy(server.port, _context(authority)) as proxy:
        options = RedisOptions((Node(HOST, proxy.port),), tls=TlsOptions(ca_file, verify=verify))
        async with _opened(options) as tier:
            assert await tier.available_within(WAIT_S if not verify else 0.2) is not verify


async def test_tier_refuses_a_certificate_of_another_name(
    server: RedisServer, authority: trustme.CA, tmp_path: Path
) -> None:
    """The right authority is not enough: the certificate must be the server's own."""
    ca_file = _written(tmp_path, "ca.pem", authority.cert_pem)
    async with running_proxy(server.port, _context(authority, "elsewhere.example")) as proxy:
        options = RedisOptions((Node(HOST, proxy.port),), tls=TlsOptions(ca_file))
        async with _opened(options) as tier:
            assert not await tier.available_within(0.2)


async def test_tier_shows_its_own_certificate(server: RedisServer, authority: trustme.CA, tmp_path: Path) -> None:
    """A server that asks for a certificate takes the client's."""
    own = authority.issue_cert("client.example")
    tls = TlsOptions(
        _written(tmp_path, "ca.pem", authority.cert_pem),
        _written(tmp_path, "cert.pem", own.cert_chain_pems[0]),
        _written(tmp_path, "key.pem", own.private_key_pem),
    )
    async with running_proxy(server.port, _context(authority, client_too=True)) as proxy:
        options = RedisOptions((Node(HOST, proxy.port),), tls=tls)
        async with _opened(options) as tier:
            assert await tier.available_within(WAIT_S)
            assert await _holds(tier)
        async with _opened(replace(options, tls=replace(tls, cert_file=None, key_file=None))) as tier:
            assert not await tier.available_within(0.2)


async def test_tier_does_not_speak_plainly_to_a_server_that_wants_tls(
    server: RedisServer, authority: trustme.CA
) -> None:
    """One side with TLS and the other without is an unavailable tier, either way round."""
    async with running_proxy(server.port, _context(authority)) as proxy:
        options = RedisOptions((Node(HOST, proxy.port),))
        async with _opened(options) as tier:
            assert not await tier.available_within(0.2)
    async with _opened(RedisOptions((Node(HOST, server.port),), tls=TlsOptions())) as tier:
        assert not await tier.available_within(0.2)


async def test_tier_speaks_tls_to_sentinels_and_to_the_primary_they_name(
    server: RedisServer, authority: trustme.CA, tmp_path: Path
) -> None:
    """Both are reached through TLS alone."""
    tls = TlsOptions(_written(tmp_path, "ca.pem", authority.cert_pem))
    context = _context(authority)
    async with running_proxy(server.port, context) as primary:
        with running_sentinel(primary.port, SERVICE, down_after_ms=60_000) as sentinel:
            async with running_proxy(sentinel.port, context) as proxy:
                options = RedisOptions((Node(HOST, proxy.port),), Topology.SENTINEL, SERVICE, tls=tls)
                async with _opened(options) as tier:
                    assert await tier.available_within(WAIT_S)
                    assert await _holds(tier)
                    assert primary.connections > 0


async def test_tier_speaks_tls_to_all_nodes_of_a_cluster(authority: trustme.CA, tmp_path: Path) -> None:
    """The seed and the nodes that it names are reached through TLS alone."""
    tls = TlsOptions(_written(tmp_path, "ca.pem", authority.cert_pem))
    async with AsyncExitStack() as stack:
        nodes = stack.enter_context(running_cluster())
        context = _context(authority)
        proxies = [await stack.enter_async_context(running_proxy(node.port, context)) for node in nodes]
        for node, proxy in zip(nodes, proxies, strict=True):
            with node.client() as client:
                client.config_set("cluster-announce-port", proxy.port)
        await _until_announced(nodes, {proxy.port for proxy in proxies})
        options = RedisOptions((Node(HOST, proxies[0].port),), Topology.CLUSTER, tls=tls)
        tier = await stack.enter_async_context(_opened(options))
        assert await tier.available_within(WAIT_S)
        assert all([await _holds(tier, name) for name in range(20)])
        assert all(proxy.connections > 0 for proxy in proxies)


async def _until_announced(nodes: list[RedisServer], ports: set[int]) -> None:
    """Asks until gossip has brought the ports to every node."""
    async with asyncio.timeout(WAIT_S):
        for server in nodes:
            with server.client() as client:
                while {node[1] for _, _, node in client.cluster("SLOTS")} != ports:
                    await asyncio.sleep(0)
