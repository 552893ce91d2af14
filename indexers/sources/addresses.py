"""Keeps jobs from reading addresses that are not for them: loopback, private networks, a cloud's metadata service.

A name is resolved once, every address that it has is checked, and the connection goes to one that was checked: a name
that resolves to something else a moment later (DNS rebinding) gains nothing. TLS still verifies the name.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import httpcore
import httpx

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.sources.bounded_stream import BoundedStream

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"
Resolver: TypeAlias = Callable[[str, int], Sequence[str]]

_SHARED = ipaddress.ip_network("100.64.0.0/10")  # carrier-grade NAT, RFC 6598
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052
_COMPATIBLE = ipaddress.ip_network("::/96")  # IPv4-compatible, deprecated by RFC 4291


class AddressGuard:
    """Decides which addresses may be connected to."""

    def __init__(self, allow_private: bool, resolver: Resolver | None = None) -> None:
        """`resolver` gives the addresses of a name; the system's own by default."""
        self._allow_private = allow_private
        self._resolver = resolver or _resolved

    def resolve(self, host: str, port: int) -> list[str]:
        """Returns the addresses of a host, all of which may be connected to.

        Raises:
            ItemUnreadable: one of them may not be (kind `forbidden_address`), or there is no host.
            SourceUnavailable: the name cannot be resolved now.
        """
        if not host:
            raise ItemUnreadable("the address", "names no host", "forbidden_address")
        try:
            found = list(self._resolver(host, port))
        except (OSError, UnicodeError) as error:
            raise SourceUnavailable(host, f"cannot be resolved: {error}") from error
        if not found:
            raise SourceUnavailable(host, "has no address")
        for text in found:
            if not self._allow_private and not is_public(ipaddress.ip_address(text.partition("%")[0])):
                reason = "is an address of this machine or of a private network; allow_private permits that"
                raise ItemUnreadable(host, reason, "forbidden_address")
        return found

    def check(self, url: str) -> httpx.URL:
        """Returns the parts of an address that may be fetched, as far as it says by itself.

        Raises:
            ItemUnreadable: it is no http or https address, or holds credentials.
        """
        try:
            parts = httpx.URL(url)
        except (httpx.InvalidURL, ValueError) as error:
            raise ItemUnreadable(url[:200], f"is no address: {error}", "forbidden_address") from error
        if parts.scheme not in ("http", "https") or not parts.host:
            raise ItemUnreadable(url[:200], "is no http or https address", "forbidden_address")
        if parts.userinfo:
            shown = str(parts.copy_with(username=None, password=None))
            raise ItemUnreadable(shown, "holds credentials; give them by reference", "forbidden_address")
        return parts


def is_public(address: Address) -> bool:
    """Tells whether an address is one of the public internet, also where it holds another one inside."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inside(address)
        if inner is not None:
            return is_public(inner)
    elif address in _SHARED:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address that a mapped, translated or tunnelled one leads to."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def guarded_client(guard: AddressGuard, timeout_s: float) -> httpx.Client:
    """Returns a client whose connections all go through the guard; it knows no proxy and follows no redirect."""
    return httpx.Client(transport=_Transport(guard), timeout=timeout_s, trust_env=False, follow_redirects=False)


class _Transport(httpx.BaseTransport):
    """httpx over a pool of httpcore's, whose network is ours."""

    def __init__(self, guard: AddressGuard) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl.create_default_context(), max_connections=16, network_backend=_Network(guard)
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        target = httpcore.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        assert isinstance(request.stream, httpx.SyncByteStream)
        made = httpcore.Request(
            request.method, target, headers=request.headers.raw, content=request.stream, extensions=request.extensions
        )
        reply = self._pool.handle_request(made)
        assert isinstance(reply.stream, Iterable)
        return httpx.Response(
            reply.status, headers=reply.headers, stream=_Body(reply.stream), extensions=reply.extensions
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        close = getattr(self._stream, "close", None)
        if close is not None:
            close()


class _Network(httpcore.NetworkBackend):
    """Connects to addresses that were checked, and to no socket files."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._system = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        failed: Exception | None = None
        for address in self._guard.resolve(host, port):
            try:
                made = self._system.connect_tcp(address, port, timeout, local_address, socket_options)
                return BoundedStream(made)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError(f"{host} has no address")

    def connect_unix_socket(self, *arguments: object, **named: object) -> httpcore.NetworkStream:
        raise httpcore.ConnectError("socket files are not connected to")

    def sleep(self, seconds: float) -> None:
        self._system.sleep(seconds)


def _resolved(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))
