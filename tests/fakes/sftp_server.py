"""An SFTP server on this machine, with a password, a user's key, a host key and folders that it does not list."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

PASSWORD = "hush"


@dataclass
class SftpPlace:
    """Where the server is, and what it serves."""

    root: Path
    port: int = 0
    host_key: str = ""
    above: str = ""  # the path of the served folder, as clients name it
    user_keys: str = ""  # the public key of the user
    closed: set[bytes] = field(default_factory=set)  # folders that may not be listed
    cutting: dict[bytes, int] = field(default_factory=dict)  # how often listing or opening one is cut off
    silent: set[bytes] = field(default_factory=set)  # files and folders about which nothing is ever answered
    cuts_channels: bool = False  # whether only the channel is cut, as when the server's SFTP program crashes
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    stop: Callable[[], None] = lambda: None

    @property
    def known_hosts(self) -> str:
        """The line by which a client knows the server."""
        return f"[127.0.0.1]:{self.port} {self.host_key}"

    def cut(self) -> None:
        """Ends all connections at once."""
        for connection in self.connections:
            connection.abort()


def user_key(path: Path) -> str:
    """Makes a private key at the path and returns its public key."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(path)
    path.chmod(0o600)
    return key.export_public_key().decode()


@contextmanager
def serving_sftp(root: Path, user_keys: str = "") -> Iterator[SftpPlace]:
    """Serves a folder while the block runs."""
    place = SftpPlace(root, user_keys=user_keys)
    ready = threading.Event()
    ending: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        key = asyncssh.generate_private_key("ssh-ed25519")
        place.host_key = key.export_public_key().decode()
        server = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[key],
            server_factory=lambda: _Login(place),
            sftp_factory=lambda channel: _Files(channel, place),
        )
        place.port = server.get_port()
        end = asyncio.Event()
        ending.append((asyncio.get_running_loop(), end))
        ready.set()
        await end.wait()
        server.close()
        place.cut()
        for connection in place.connections:
            await connection.wait_closed()
        await server.wait_closed()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="sftp")
    thread.start()
    assert ready.wait(30.0)

    def stop() -> None:
        if thread.is_alive():
            loop, end = ending[0]
            loop.call_soon_threadsafe(end.set)
            thread.join(30.0)

    place.stop = stop
    try:
        yield place
    finally:
        stop()


class _Login(asyncssh.SSHServer):
    def __init__(self, place: SftpPlace) -> None:
        self._place = place

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._place.connections.append(conn)

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return bool(self._place.user_keys)

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key.export_public_key().decode() == self._place.user_keys

    def validate_password(self, username: str, password: str) -> bool:
        return password == PASSWORD


class _Files(asyncssh.SFTPServer):
    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], place: SftpPlace) -> None:
        super().__init__(channel, chroot=os.fsencode(place.root))
        self._place = place

    async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        if path in self._place.closed:
            raise asyncssh.SFTPPermissionDenied("not for you")
        await self._cut_off(path)
        async for entry in super().scandir(path):
            yield entry

    async def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        await self._cut_off(path)
        return super().open(path, pflags, attrs)

    async def _cut_off(self, path: bytes) -> None:
        if path in self._place.silent:
            await asyncio.Event().wait()
        if not self._place.cutting.get(path, 0):
            return
        self._place.cutting[path] -= 1
        if self._place.cuts_channels:
            self.channel.abort()
        else:
            self._place.cut()
        await asyncio.Event().wait()
