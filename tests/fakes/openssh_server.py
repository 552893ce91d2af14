"""The sshd of OpenSSH, where this machine has one, as an SFTP server that lets the user of the tests in by a key."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.fakes.redis_server import free_port
from tests.fakes.sftp_server import SftpPlace, user_key

_SEPARATION = Path("/run/sshd")  # a folder that sshd insists on where root starts it; made when the service starts


def user() -> str:
    """Returns the user that the tests run as: another one cannot be logged in without being root."""
    return pwd.getpwuid(os.getuid()).pw_name


def missing() -> str:
    """Returns why there is no server on this machine; empty where there is one."""
    if _program() is None:
        return "sshd is not installed"
    if os.getuid() == 0 and not _SEPARATION.is_dir():
        return f"sshd, started by root, needs the folder {_SEPARATION}"
    return ""


@contextmanager
def serving_openssh(root: Path, user_keys: str, folder: Path) -> Iterator[SftpPlace]:
    """Serves all files of this machine while the block runs; its own are kept in `folder`."""
    place = SftpPlace(root, free_port(), above=str(root), user_keys=user_keys)
    place.host_key = user_key(folder / "host_key")
    (folder / "users").write_text(user_keys, encoding="utf-8")
    (folder / "sshd_config").write_text(_configuration(folder, place.port), encoding="utf-8")
    command = [str(_program()), "-D", "-e", "-f", str(folder / "sshd_config")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            _await_listening(server)
            place.stop = lambda: _kill(server)
            yield place
        finally:
            _kill(server)


def _program() -> str | None:
    return shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")


def _configuration(folder: Path, port: int) -> str:
    lines = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": folder / "host_key",
        "AuthorizedKeysFile": folder / "users",
        "AuthenticationMethods": "publickey",
        "PermitRootLogin": "prohibit-password",
        "StrictModes": "no",  # folders of tests lie below one that everybody may write to
        "PidFile": "none",
        "Subsystem": "sftp internal-sftp",
        "ForceCommand": "internal-sftp",
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def _await_listening(server: subprocess.Popen[str]) -> None:
    said = []
    for line in server.stderr or ():
        said.append(line)
        if line.startswith("Server listening"):
            return
    raise RuntimeError(f"sshd does not start: {''.join(said)}")


def _kill(server: subprocess.Popen[str]) -> None:
    """Kills the server, and first the processes of its sessions, which would outlive it."""
    for child in [*_children(server.pid), server.pid]:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    server.wait(30.0)


def _children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    found = [int(child) for child in listed.read_text(encoding="ascii").split()] if listed.exists() else []
    return [one for child in found for one in (*_children(child), child)]
