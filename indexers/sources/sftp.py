"""What an SFTP server is connected to with, and how its connection comes to an end: lost, left or silent.

The host key is always checked, and the user's own SSH configuration is not read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.spec import FilesSource as FilesSpec

SFTP_SCHEMES = ("sftp", "ssh")
SFTP_PORT = 22
_GOODBYE_S = 5.0


def sftp_options(
    spec: FilesSpec, base_folder: Path, access: SourceAccess, guard: AddressGuard
) -> Callable[[], dict[str, Any]]:
    """Returns what gives the options of the file system, and looks up the host, when it is connected to.

    Raises:
        ItemUnreadable: a secret, the key or the host keys are not there, or out of bounds.
    """
    parts = urlsplit(spec.url)
    host, port = parts.hostname or "", parts.port or SFTP_PORT
    fixed: dict[str, Any] = {
        "port": port,
        "username": spec.username or parts.username,
        "known_hosts": str(_host_keys(spec, base_folder, access, host)),
        "host_key_alias": host,
        "config": None,  # the user's file may name a program to connect with
        "connect_timeout": spec.timeout_s,
        "login_timeout": spec.timeout_s,
        "keepalive_interval": 15,
        "sftp_client_kwargs": {"path_errors": "surrogateescape"},
        **_credentials(spec, base_folder, access),
    }
    # The address that was checked is connected to; the name is that of the host key.
    return lambda: {"host": guard.resolve(host, port)[0], **fixed}


@contextmanager
def bounded(files: Any, name: str, within_s: float) -> Iterator[None]:
    """Cuts the connection when the block takes longer, since no answer of its library's has a deadline.

    Raises:
        SourceUnavailable: it took longer.
    """
    late = threading.Event()

    def cut() -> None:
        late.set()
        files.loop.call_soon_threadsafe(files.client.abort)

    timer = threading.Timer(within_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except _errors() as error:
        if late.is_set():
            raise SourceUnavailable(name, f"does not answer within {within_s:g} s") from error
        raise
    finally:
        timer.cancel()


def is_lost(files: Any) -> bool:
    """Tells whether the connection is lost."""
    return bool(files.client.is_closed())


def disconnect(files: Any) -> None:
    """Closes the connections at once."""
    from fsspec.asyn import sync  # noqa: PLC0415 - comes with the extra `sftp`

    sync(files.loop, _ended, files.client)


async def _ended(connection: Any) -> None:
    connection.close()
    try:
        await asyncio.wait_for(connection.wait_closed(), _GOODBYE_S)
    except TimeoutError:
        connection.abort()  # a server that has gone silent need not say goodbye


def _errors() -> tuple[type[Exception], ...]:
    import asyncssh  # noqa: PLC0415 - comes with the extra `sftp`

    return OSError, ValueError, RuntimeError, asyncssh.Error


def _host_keys(spec: FilesSpec, base_folder: Path, access: SourceAccess, host: str) -> Path:
    known = base_folder / spec.known_hosts_file if spec.known_hosts_file else Path.home() / ".ssh" / "known_hosts"
    known = access.path(known)
    if not known.is_file():
        reason = f"{known} is not there; save the server's host key in it, as `ssh-keyscan {host}` shows it"
        raise ItemUnreadable("source.known_hosts_file", reason, "no_secret")
    return known


def _credentials(spec: FilesSpec, base_folder: Path, access: SourceAccess) -> dict[str, Any]:
    """Returns the job's own; only where it has none, and was not submitted, the user's keys and agent are asked."""
    password, submitted = access.secret(spec.password_ref), access.secrets is not None
    found: dict[str, Any] = {"password": password or None}
    if spec.key_file:
        key = access.path(base_folder / spec.key_file)
        if not key.is_file():
            raise ItemUnreadable("source.key_file", f"{key} is not there; give the path of a private key", "no_secret")
        found["client_keys"] = [str(key)]
    elif submitted:
        found["client_keys"] = None
    if submitted or spec.key_file or password:
        found["agent_path"] = None
    return found
