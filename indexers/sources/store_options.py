"""What a file system is opened with: the credentials that the job refers to, and no others where it was submitted.

Libraries look for credentials by themselves: in the environment, files of the user, an agent, a cloud's metadata
service. Those are the server's own, and not for jobs that others submit to it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.spec import FilesSource as FilesSpec

Options: TypeAlias = Callable[[], dict[str, Any]]
"""Gives the options when the store is connected to: only then are names resolved and libraries loaded."""

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "memory"})
_S3 = ("s3", "s3a")
_SFTP = ("sftp", "ssh")
_GOOGLE = ("gs", "gcs")
_AZURE = ("az", "abfs")
_GOODBYE_S = 5.0
_AWS_ERRORS = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
)
_ERRORS: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(_S3, _AWS_ERRORS),
    **dict.fromkeys(_SFTP, (("asyncssh", "Error"),)),
    **dict.fromkeys(_GOOGLE, (("gcsfs.retry", "HttpError"), ("google.auth.exceptions", "GoogleAuthError"))),
    **dict.fromkeys(_AZURE, (("azure.core.exceptions", "AzureError"),)),
}


def checked_options(spec: FilesSpec, base_folder: Path, access: SourceAccess, guard: AddressGuard) -> Options:
    """Returns the options for the URL's scheme.

    Raises:
        ItemUnreadable: the store may not be reached by this job, or a secret is not there.
    """
    scheme, password = urlsplit(spec.url).scheme, access.secret(spec.password_ref)
    submitted = access.secrets is not None
    if submitted and scheme in (*_S3, *_GOOGLE, *_AZURE) and not (password or spec.anonymous):
        reason = "is missing; jobs that are submitted do not use the server's own credentials"
        raise ItemUnreadable("source.password_ref", reason, "no_secret")
    if scheme in _S3:
        return _s3(spec, password, guard)
    if scheme in _SFTP:
        return _sftp(spec, password, base_folder, access, guard)
    if scheme in _GOOGLE:
        return lambda: _google(spec, password)
    if scheme in _AZURE:
        named = {"account_name": spec.username, "account_key": password, "anon": spec.anonymous}
        return lambda: {name: value for name, value in named.items() if value}
    if scheme == "memory" and not submitted:
        return dict
    raise ItemUnreadable(spec.url, f"{scheme}:// is not read; use s3, gs, az, sftp, http, https or file", "forbidden")


def foreign_errors(scheme: str) -> tuple[type[Exception], ...]:
    """Returns what the libraries of a scheme raise, as far as they are loaded; our own errors are none of them."""
    found: list[type[Exception]] = [OSError, ValueError, RuntimeError, TimeoutError]
    for module, name in _ERRORS.get(scheme, ()):
        if module in sys.modules:  # one that is not loaded has raised nothing
            found.append(getattr(sys.modules[module], name))
    return tuple(found)


def disconnect(scheme: str, files: Any) -> None:
    """Closes the connections of a file system of SFTP at once; others end with the last use of theirs."""
    if scheme in _SFTP:
        from fsspec.asyn import sync  # noqa: PLC0415 - comes with the extra `sftp`

        sync(files.loop, _ended, files.client)


def is_lost(scheme: str, files: Any) -> bool:
    """Tells whether a file system of SFTP has lost its connection; others connect for each request."""
    return scheme in _SFTP and bool(files.client.is_closed())


@contextmanager
def bounded(scheme: str, files: Any, name: str, within_s: float) -> Iterator[None]:
    """Cuts an SFTP connection when the block takes longer, since no answer of its library's has a deadline.

    Raises:
        SourceUnavailable: it took longer.
    """
    if scheme not in _SFTP:
        yield
        return
    late = threading.Event()

    def cut() -> None:
        late.set()
        files.loop.call_soon_threadsafe(files.client.abort)

    timer = threading.Timer(within_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except foreign_errors(scheme) as error:
        if late.is_set():
            raise SourceUnavailable(name, f"does not answer within {within_s:g} s") from error
        raise
    finally:
        timer.cancel()


async def _ended(connection: Any) -> None:
    connection.close()
    try:
        await asyncio.wait_for(connection.wait_closed(), _GOODBYE_S)
    except TimeoutError:
        connection.abort()  # a server that has gone silent need not say goodbye


def _s3(spec: FilesSpec, password: str, guard: AddressGuard) -> Options:
    config: dict[str, Any] = {
        "connect_timeout": min(spec.timeout_s, 30.0),
        "read_timeout": spec.timeout_s,
        "retries": {"total_max_attempts": 2, "mode": "standard"},  # the runner tries again by itself
    }
    client = {"region_name": spec.region} if spec.region else {}
    host, port = "", 0
    if spec.endpoint_url:
        endpoint = guard.check(spec.endpoint_url)
        host, port = endpoint.host, endpoint.port or (443 if endpoint.scheme == "https" else 80)
        client["endpoint_url"] = spec.endpoint_url

    def options() -> dict[str, Any]:
        if host:
            guard.resolve(host, port)  # numbers are not asked of the resolver below
            config["connector_args"] = {"resolver": _resolver(guard)}
        return {
            "anon": spec.anonymous,
            "key": spec.username or None,
            "secret": password or None,
            "client_kwargs": client,
            "config_kwargs": config,
            "use_listings_cache": False,
        }

    if host:
        _refuse_early(guard, host, port)
    return options


def _sftp(spec: FilesSpec, password: str, base_folder: Path, access: SourceAccess, guard: AddressGuard) -> Options:
    parts = urlsplit(spec.url)
    host, port = parts.hostname or "", parts.port or 22
    known = base_folder / spec.known_hosts_file if spec.known_hosts_file else Path.home() / ".ssh" / "known_hosts"
    known = access.path(known)
    if not known.is_file():
        reason = f"{known} is not there; save the server's host key in it, as `ssh-keyscan {host}` shows it"
        raise ItemUnreadable("source.known_hosts_file", reason, "no_secret")
    fixed: dict[str, Any] = {
        "port": port,
        "username": spec.username or parts.username,
        "password": password or None,
        "known_hosts": str(known),
        "host_key_alias": host,
        "config": None,  # the user's file may name a program to connect with
        "connect_timeout": spec.timeout_s,
        "login_timeout": spec.timeout_s,
        "keepalive_interval": 15,
        "sftp_client_kwargs": {"path_errors": "surrogateescape"},
    }
    if spec.key_file:
        key = access.path(base_folder / spec.key_file)
        if not key.is_file():
            raise ItemUnreadable("source.key_file", f"{key} is not there; give the path of a private key", "no_secret")
        fixed["client_keys"] = [str(key)]
    elif access.secrets is not None:
        fixed["client_keys"] = None
    if access.secrets is not None or spec.key_file or password:
        fixed["agent_path"] = None
    _refuse_early(guard, host, port)
    # The address that was checked is connected to; the name is that of the host key.
    return lambda: {"host": guard.resolve(host, port)[0], **fixed}


def _refuse_early(guard: AddressGuard, host: str, port: int) -> None:
    """Refuses numbers that may not be connected to before anything is tried; names are resolved when it is."""
    try:
        socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)
    except OSError:
        return
    guard.resolve(host, port)


def _google(spec: FilesSpec, password: str) -> dict[str, Any]:
    if spec.anonymous:
        return {"token": "anon"}
    return {"token": json.loads(password)} if password else {}


def _resolver(guard: AddressGuard) -> Any:
    """Returns a resolver for aiohttp that gives only addresses that the guard has checked."""
    from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: PLC0415 - comes with the extra `s3`

    class Guarded(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            found = await asyncio.to_thread(guard.resolve, host, port)
            return [
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                    proto=0,
                    flags=socket.AI_NUMERICHOST,
                )
                for address in found
            ]

        async def close(self) -> None:
            """Holds nothing."""

    return Guarded()
