"""The lock of a data folder: one process writes, and the system lets go of the lock when that process dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from indexers.errors import DataFolderLocked


class FolderLock:
    """Holds a folder from its making until `release`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 64).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise DataFolderLocked(str(folder), f"process {holder or 'unknown'}") from None
        os.truncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Lets go of the folder."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
