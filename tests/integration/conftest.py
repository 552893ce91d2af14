"""Real server processes: one for the session, with three tenants' keys, and one by itself for tests that stop it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from retrieval.client import Client
from retrieval.identity import hash_of

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
KEYS = {"alice": ("read", "write"), "bob": ("read", "write"), "root": ("admin",)}


@dataclass
class ServerProcess:
    """A running `headrace serve`."""

    process: subprocess.Popen[str]
    folder: Path
    seen: list[dict[str, Any]] = field(default_factory=list)
    lines: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)
    address: str = ""
    unix_socket: str = ""
    metrics_port: int = 0

    def client(self, who: str | None = None, target: str | None = None) -> Client:
        """Returns a client with the key of one of the callers."""
        return Client(target or self.address, who, timeout_s=PATIENCE_S)

    def wait_for(self, event: str, matches: Callable[[dict[str, Any]], bool] = lambda line: True) -> dict[str, Any]:
        """Returns the next log line of that event; lines before it are skipped."""
        while True:
            line = self.lines.get(timeout=PATIENCE_S)
            if line["event"] == event and matches(line):
                return line

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


def command(folder: Path) -> list[str]:
    """Returns the command line that serves with the settings in the folder."""
    return [sys.executable, "-m", "retrieval.cli.main", "serve", "--config", str(folder / "headrace.toml")]


def environment() -> dict[str, str]:
    """Returns an environment in which the command finds this checkout and nothing else of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    return kept | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'proto'}"}


@contextmanager
def running(folder: Path, settings: str) -> Iterator[ServerProcess]:
    """Runs a server with these settings until the body ends."""
    (folder / "headrace.toml").write_text(settings, encoding="utf-8")
    process = subprocess.Popen(command(folder), cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
    server = ServerProcess(process, folder)
    reader = threading.Thread(target=_read, args=(server,))
    reader.start()
    try:
        ready = server.wait_for("serving")
        server.address, server.unix_socket = ready["address"], ready["unix_socket"]
        server.metrics_port = ready["metrics_port"]
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_S)
        reader.join(PATIENCE_S)
        assert process.stderr is not None
        process.stderr.close()


def settings_text(folder: Path, keys: bool = True, **server: Any) -> str:
    """Returns settings for a small server in the folder."""
    lines = ["[server]", "port = 0", *(f"{name} = {json.dumps(value)}" for name, value in server.items())]
    lines += ["[data]", f"folder = {json.dumps(str(folder / 'data'))}", "[encoders]", "workers = 1"]
    for name, roles in KEYS.items() if keys else ():
        lines += ["[[auth.keys]]", f'name = "{name}"', f'sha256 = "{hash_of(name)}"', f'tenant = "{name}"']
        lines += [f"roles = {json.dumps(roles)}"]
    return "\n".join(lines) + "\n"


def _read(server: ServerProcess) -> None:
    assert server.process.stderr is not None
    for text in server.process.stderr:
        try:
            line = json.loads(text)
        except ValueError:
            line = {"event": "no json", "text": text}
        server.seen.append(line)
        server.lines.put(line)


def free_port() -> int:
    """Returns a port that nobody listens on at the moment."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server for the whole session; tests keep apart by the names of their collections."""
    folder = tmp_path_factory.mktemp("server")
    text = settings_text(folder, unix_socket=str(folder / "h.sock"), metrics_port=free_port())
    with running(folder, text) as found:
        yield found
        assert found.stop() == 0
