"""What a file system is opened with: the credentials that the job refers to, and no others where it was submitted.

Libraries look for credentials by themselves: in the environment, files of the user, an agent, a cloud's metadata
service. Those are the server's own, and not for jobs that others submit to it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from indexers.errors import ItemUnreadable
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.sftp import SFTP_PORT, SFTP_SCHEMES, sftp_options
from indexers.sources.spec import FilesSource as FilesSpec

Options: TypeAlias = Callable[[], dict[str, Any]]
"""Gives the options when the store is connected to: only then are names resolved and libraries loaded."""

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "memory"})
_S3 = ("s3", "s3a")
_GOOGLE = ("gs", "gcs")
_AZURE = ("az", "abfs")
_AWS_ERRORS = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
)
_ERRORS: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(_S3, _AWS_ERRORS),
    **dict.fromkeys(SFTP_SCHEMES, (("asyncssh", "Error"),)),
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
    if scheme in SFTP_SCHEMES:
        options = sftp_options(spec, base_folder, access, guard)
        parts = urlsplit(spec.url)
        _refuse_early(guard, parts.hostname or "", parts.port or SFTP_PORT)
        return options
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
