"""Waits for changes in a folder: by the system's own notices, and by a look around now and then where there are none.

watchfiles (MIT) brings the notices of all systems behind one iterator and gathers what comes in bursts; watchdog calls
back from threads of its own, which would have to be gathered here.
"""

from __future__ import annotations

import threading
from pathlib import Path

from watchfiles import Change, watch

from indexers.sources.globs import Selection

_GATHER_MS = 400
_STEP_MS = 50
_LOOK_AROUND_S = 300.0  # without a notice; network drives give none


class FolderWatch:
    """Notices of one folder, from the first call of `mark` on."""

    def __init__(self, root: Path, selection: Selection) -> None:
        self._root = root
        self._selection = selection
        self._changed = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def mark(self) -> None:
        """Notes that a scan begins: what changes from now on is news."""
        self._changed.clear()

    def wait(self, timeout_s: float) -> bool:
        """Waits for news; the first call also begins to listen, and after a long silence there is always news."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._listen, name="folder-watch", daemon=True)
            self._thread.start()
        return self._changed.wait(min(timeout_s, _LOOK_AROUND_S)) or timeout_s >= _LOOK_AROUND_S

    def close(self) -> None:
        """Stops listening."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _listen(self) -> None:
        changes = watch(
            self._root,
            watch_filter=self._concerns,
            debounce=_GATHER_MS,
            step=_STEP_MS,
            stop_event=self._stopped,
            raise_interrupt=False,
        )
        for _ in changes:
            self._changed.set()

    def _concerns(self, change: Change, path: str) -> bool:
        """Tells whether a file is one that is read. The root itself, when it is a file, always is."""
        try:
            name = Path(path).relative_to(self._root).as_posix()
        except ValueError:
            return True
        return name == "." or self._selection.reads(name)
