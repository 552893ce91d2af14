"""What a server that nobody calls takes of a core."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Idle:
    """Processor time of a server at rest."""

    seconds: float
    core_share: float  # 1.0 is a whole core


def measure_idle(seconds: float) -> Idle:
    """Starts a server over an empty folder, lets it finish what it does once, and watches it from outside."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as process:
        watched = psutil.Process(process.pid)
        time.sleep(1.0)
        before, begun = watched.cpu_times(), time.monotonic()
        time.sleep(seconds)
        after, passed = watched.cpu_times(), time.monotonic() - begun
    spent = after.user + after.system - before.user - before.system
    return Idle(passed, max(0.0, spent) / passed)


@contextmanager
def _server(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "retrieval.cli.main", "serve", "--data", str(folder), "--port", "0"]
    with (folder / "log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True)
        try:
            _wait_for(folder / "log", "token_cost_measured", process)
            yield process
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)


def _wait_for(log: Path, event: str, process: subprocess.Popen[str]) -> None:
    give_up = time.monotonic() + _PATIENCE_S
    while process.poll() is None and time.monotonic() < give_up:
        lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
        if any(json.loads(line).get("event") == event for line in lines):
            return
        time.sleep(0.1)
    raise SystemExit(f"the server did not get as far as {event}: {log.read_text(encoding='utf-8')[-2_000:]}")
