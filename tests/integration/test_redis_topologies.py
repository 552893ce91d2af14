"""What is particular to TLS, to Sentinels and to a cluster: trust, a failover, and a node that goes and comes back."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from redis.crc import key_slot

from retrieval.caching.redis.naming import redis_name
from retrieval.caching.redis.options import Node, RedisOptions, TlsOptions, options_from_url
from retrieval.caching.redis.tier import RedisTier, open_redis_tier
from tests.fakes.cache_keys import cache_key
from tests.fakes.redis_server import HOST, RedisServer, running_cluster, running_sentinel
from tests.fakes.tcp_proxy import running_proxy

SERVICE = "headrace"
TTL_S = 600.0
SLOTS = 16384
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


async def _until_it_holds(tier: RedisTier) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await _holds(tier, "afterwards"):
            await tier.available_within(WAIT_S)


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


async def test_tier_follows_a_failover() -> None:
    """When the primary dies, look-ups are flagged misses until the Sentinel has named its successor, and go there."""
    with (
        RedisServer("--repl-diskless-sync-delay", "0") as primary,
        RedisServer("--replicaof", HOST, str(primary.port)) as replica,
    ):
        replica.wait_for_log("sync: Finished with success")
        with running_sentinel(primary, SERVICE) as sentinel:
            url = f"redis+sentinel://{HOST}:{sentinel.port}/{SERVICE}"
            async with _opened(options_from_url(url)) as tier:
                assert await tier.available_within(WAIT_S)
                assert await _holds(tier)
                sentinel.wait_for_log("+slave slave")
                primary.kill()
                assert not (await tier.get_many([cache_key(0)])).available
                await _until_it_holds(tier)
                with replica.client() as client:
                    assert client.dbsize() > 0
                    assert client.info("replication")["role"] == "master"


async def test_tier_is_unavailable_while_the_sentinel_knows_no_primary(server: RedisServer) -> None:
    """A service that the Sentinel does not know is no server, and neither is a Sentinel that is gone."""
    with running_sentinel(server, SERVICE) as sentinel:
        url = f"redis+sentinel://{HOST}:{sentinel.port}"
        async with _opened(options_from_url(f"{url}/other")) as tier:
            assert not await tier.available_within(0.2)
        async with _opened(options_from_url(f"{url}/{SERVICE}")) as tier:
            assert await tier.available_within(WAIT_S)
            sentinel.kill()
            assert await _holds(tier)
    async with _opened(options_from_url(f"{url}/{SERVICE}")) as tier:
        assert not await tier.available_within(0.2)


@pytest.mark.parametrize(
    "garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b":1\r\n", b"*1\r\n:1\r\n", b"*1\r\n*0\r\n", b"+OK\r\n"]
)
@pytest.mark.parametrize("kind", ["redis", "redis+sentinel", "redis+cluster"])
async def test_tier_outlives_garbage_while_it_looks_for_servers(server: RedisServer, kind: str, garbage: bytes) -> None:
    """Whoever answers nonsense is no server; the search goes on, whatever redis-py makes of it."""
    path = f"/{SERVICE}" if kind == "redis+sentinel" else ""
    async with running_proxy(server.port) as proxy:
        proxy.faults.garbage = garbage
        async with _opened(options_from_url(f"{kind}://{HOST}:{proxy.port}{path}")) as tier:
            assert not await tier.available_within(0.1)
            asked = proxy.connections
            async with asyncio.timeout(WAIT_S):
                while proxy.connections == asked:
                    assert not await tier.available_within(0.1)


async def test_tier_recovers_when_a_node_of_the_cluster_comes_back() -> None:
    """A look-up that needs a lost node is a flagged miss, not half an answer; with the node the tier is back."""
    with running_cluster() as nodes:
        url = f"redis+cluster://{HOST}:{nodes[0].port},{HOST}:{nodes[1].port}"
        async with _opened(options_from_url(url)) as tier:
            assert await tier.available_within(WAIT_S)
            keys = [cache_key(number) for number in range(50)]
            for number, key in enumerate(keys):
                tier.put(key, str(number).encode(), TTL_S)
            await tier.flush()
            nodes[0].kill()
            found = await tier.get_many(keys)
            assert (list(found.values), found.available) == ([None] * 50, False)
            nodes[0].start()
            async with asyncio.timeout(WAIT_S):
                while not (found := await tier.get_many(keys)).available:
                    await tier.available_within(WAIT_S)
            held = [int(stored.value) if stored else None for stored in found.values]
            assert all(value in {None, number} for number, value in enumerate(held))
            assert any(value is None for value in held)
            assert any(value is not None for value in held)


async def test_tier_follows_slots_that_move() -> None:
    """Keys whose slots were given to another node are found there."""
    with running_cluster() as nodes:
        async with _opened(options_from_url(f"redis+cluster://{HOST}:{nodes[0].port}")) as tier:
            assert await tier.available_within(WAIT_S)
            assert all([await _holds(tier, name) for name in range(20)])
            await tier.delete([cache_key(name) for name in range(20)])
            _give_away(nodes[0], nodes[1], {key_slot(redis_name(tier.prefix, cache_key(name))) for name in range(20)})
            assert all([await _holds(tier, name) for name in range(20)])
            assert tier.stats().failures == 0


def _give_away(old: RedisServer, new: RedisServer, slots: set[int]) -> None:
    """Tells both that those of the slots that were the old one's are the new one's; they hold no keys."""
    with old.client() as losing, new.client() as gaining:
        identity = gaining.cluster("MYID").decode()
        for slot in (slot for slot in slots if slot < SLOTS // 3):
            for client in (gaining, losing):
                client.cluster("SETSLOT", slot, "NODE", identity)
        gaining.cluster("BUMPEPOCH")
