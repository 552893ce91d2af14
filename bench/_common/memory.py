"""How much memory of its own a process holds: anonymous and shared pages, without mapped files (Linux)."""

from __future__ import annotations

import subprocess
import time
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


def peak_of(process: subprocess.Popen[bytes]) -> int:
    """Watches a process and those it starts, from outside until it ends, and returns the most they held, in bytes."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, own_bytes(process.pid) + sum(own_bytes(pid) for pid in _descendants(process.pid)))
        time.sleep(_EVERY_S)
    return peak


def _descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
