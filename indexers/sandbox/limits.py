"""How much a child process that parses may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The bounds of one child process."""

    timeout_s: float = 60.0  # for one document; in files of rows, for one row
    max_memory_bytes: int = 1024**3  # of address space, beyond what the process has once its libraries are loaded
    start_timeout_s: float = 60.0  # until a child that was just started answers
