"""The processes that are killed: a server and a worker, each started again on the same data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[3]
_PATIENCE_S = 60.0


class Killable:
    """One `headrace` command that can be killed and started again."""

    def __init__(self, folder: Path, name: str, *arguments: str, ready: str = "") -> None:
        """`ready` is what a line of its log holds once it has started; empty starts without waiting."""
        self._folder = folder
        self._name = name
        self._arguments = arguments
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What the process has written, over all its lives."""
        return self._folder / f"{self._name}.log"

    def start(self) -> None:
        """Starts the command and waits until it is ready."""
        begun = self.log.stat().st_size if self.log.exists() else 0
        command = [sys.executable, "-m", "retrieval.cli.main", *self._arguments]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, env=_environment(), stdout=log, stderr=log)
        if self._ready:
            self._wait(begun)

    def kill(self) -> None:
        """Ends it at once."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to stop, and ends it when it does not."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _wait(self, begun: int) -> None:
        assert self._process is not None
        waited = threading.Event()
        for _ in range(int(_PATIENCE_S / 0.02)):
            with self.log.open("rb") as log:
                log.seek(begun)
                if self._ready.encode() in log.read():
                    return
            if self._process.poll() is not None:
                break
            waited.wait(0.02)
        raise AssertionError(f"{self._name} did not start:\n{self.log.read_text(encoding='utf-8')[-4000:]}")


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    return kept | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'proto'}"}
