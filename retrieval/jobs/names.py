"""What a worker calls itself, so that others on its machine can tell whether it still lives."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def worker_name() -> str:
    """Returns the name of this process: host, process id, and when it was started, since ids come again."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_dead(worker: str) -> bool:
    """Tells whether a worker has ended for certain; one of another machine may always live."""
    host, _, rest = worker.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname() or not rest.isdigit():
        return False
    started = _started(int(rest))
    return started != worker.rpartition(":")[2] if started else not _is_there(int(rest))


def _started(pid: int) -> str:
    """Returns when a process was started, in the system's own ticks; empty where that is not told, or it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
