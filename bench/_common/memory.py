"""How much memory of its own a process holds: anonymous and shared pages, without mapped files (Linux)."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_FIELDS = ("RssAnon:", "RssShmem:")
_EVERY_S = 0.05


def own_bytes(pid: int) -> int:
    """Returns RssAnon + RssShmem of a process from `/proc`; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_FIELDS))


@dataclass(frozen=True, slots=True)
class Watched:
    """What a process and those it started held, from its start to its end."""

    peak_bytes: int
    seconds: Sequence[float]  # since the start, one a second
    held_bytes: Sequence[int]  # the most within each second


def peak_of(process: subprocess.Popen[bytes]) -> int:
    """Watches a process and those it starts, from outside until it ends, and returns the most they held, in bytes."""
    return watch(process).peak_bytes


def watch(process: subprocess.Popen[bytes]) -> Watched:
    """Watches a process and those it starts, from outside until it ends."""
    started = time.monotonic()
    held: dict[int, int] = {}
    while process.poll() is None:
        second = int(time.monotonic() - started)
        now = own_bytes(process.pid) + sum(own_bytes(pid) for pid in _descendants(process.pid))
        held[second] = max(held.get(second, 0), now)
        time.sleep(_EVERY_S)
    return Watched(max(held.values(), default=0), list(map(float, held)), list(held.values()))


def _descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
