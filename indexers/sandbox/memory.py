"""How much address space this process may take: a bound for documents, beyond what its libraries take.

Libraries are loaded when the first file asks for them, so the bound moves up with them, but never past what all of
them together could need. Memory that a file leaves behind and that is no library's makes the process unfit.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_LIBRARIES_BYTES = 512 * 1024 * 1024
_LEFT_SHARE = 0.25  # of the bound; a process in which more is left over ends, so that the next file has it all


class AddressSpace:
    """The bound of this process; without effect where there is no /proc to measure by, as on macOS."""

    def __init__(self, max_memory_bytes: int) -> None:
        self._bound = max_memory_bytes
        self._libraries = len(sys.modules)
        self._base = address_space_bytes()
        self._highest_base = self._base + _LIBRARIES_BYTES
        self._limit(self._highest_base + max_memory_bytes)

    def fit(self) -> bool:
        """Takes note of what the last file has left; False when the next one had better get another process."""
        used = address_space_bytes()
        if len(sys.modules) > self._libraries:
            self._libraries = len(sys.modules)
            self._base = min(used, self._highest_base)
            self._limit(self._highest_base + self._bound)
        return used <= self._base + self._bound * _LEFT_SHARE

    def _limit(self, hard: int) -> None:
        if self._base:
            _, allowed = resource.getrlimit(resource.RLIMIT_AS)
            hard = hard if allowed == resource.RLIM_INFINITY else min(hard, allowed)
            resource.setrlimit(resource.RLIMIT_AS, (min(self._base + self._bound, hard), hard))


def address_space_bytes() -> int:
    """Returns how much address space this process has; 0 where nothing tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()
