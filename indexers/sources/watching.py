"""Tells when files below a folder have changed: by the system's notices, and by a look around now and then.

Notices alone are not enough: network drives give none, there are none when the system's watches are used up, and none
of what happened before listening began. So what is there is compared by names, sizes and times; also after a notice,
since many are of files that nobody reads. watchfiles (MIT) gathers the notices of all systems behind one iterator;
watchdog calls back from threads of its own, which would have to be gathered here.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from watchfiles import Change, watch

from indexers.sources.globs import Selection

_GATHER_MS = 400
_STEP_MS = 50
_LOOK_AROUND_S = 300.0
_LOOK_AROUND_DEAF_S = 30.0  # while there are no notices
_CLOCK_NS = 20_000_000  # by which times of files may lag behind the clock
_READY_S = 30.0


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was there: a hash of names, sizes and times, and when something changed last."""

    digest: str
    changed_ns: int


class FolderWatch:
    """Watches one folder or file. Nothing runs until somebody waits for the first time."""

    def __init__(self, root: Path, selection: Selection, look_around_s: float = _LOOK_AROUND_S) -> None:
        self._root = root
        self._selection = selection
        self._look_around_s = look_around_s
        self._noticed = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._marked_ns = 0
        self._digest = ""
        self._next_look = 0.0

    def mark(self) -> None:
        """Notes that a scan begins: what changes from now on is news."""
        self._marked_ns = time.time_ns() - _CLOCK_NS
        if self._thread is not None:
            self._look()

    def wait(self, timeout_s: float) -> bool:
        """Waits for news since the last mark, or since the last that were told; without either, since now."""
        give_up = time.monotonic() + timeout_s
        if self._thread is None and self._begin():
            return True
        while True:
            now = time.monotonic()
            noticed = self._noticed.wait(max(0.0, min(give_up, self._next_look) - now))
            if (noticed or time.monotonic() >= self._next_look) and self._look():
                return True
            if time.monotonic() >= give_up:
                return False

    def close(self) -> None:
        """Stops listening."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _begin(self) -> bool:
        """Begins to listen, and then looks; tells whether something had changed since the mark."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(ready,), name="folder-watch", daemon=True)
        self._thread.start()
        ready.wait(_READY_S)
        self._look()
        return self._marked_ns > 0 and self._seen().changed_ns >= self._marked_ns

    def _look(self) -> bool:
        """Looks around, and tells whether something is other than it was at the last look."""
        self._noticed.clear()
        before, self._digest = self._digest, self._seen().digest
        deaf = self._thread is None or not self._thread.is_alive()
        every = min(self._look_around_s, _LOOK_AROUND_DEAF_S) if deaf else self._look_around_s
        self._next_look = time.monotonic() + every
        return self._digest != before

    def _listen(self, ready: threading.Event) -> None:
        folder = self._root if self._root.is_dir() else self._root.parent
        try:
            for changes in watch(
                folder,
                watch_filter=self._concerns,
                debounce=_GATHER_MS,
                step=_STEP_MS,
                stop_event=self._stopped,
                rust_timeout=_STEP_MS,
                yield_on_timeout=True,
                recursive=folder == self._root,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                ready.set()
                if changes:
                    self._noticed.set()
        except OSError:
            return  # there are no notices to be had; looking around must do
        finally:
            ready.set()

    def _concerns(self, _: Change, path: str) -> bool:
        """Tells whether something could have changed; a folder that is moved brings one notice for all in it."""
        if Path(path) == self._root:
            return True
        parts = Path(os.path.relpath(path, self._root)).parts
        return parts[0] != ".." and all(self._selection.enters("/".join(parts[: end + 1])) for end in range(len(parts)))

    def _seen(self) -> _Seen:
        digest, changed_ns = hashlib.blake2b(digest_size=16), 0
        for path, counts in self._places():
            try:
                status = path.stat()
            except OSError:
                digest.update(os.fsencode(path) + b"\0gone\0")
                continue
            changed_ns = max(changed_ns, status.st_ctime_ns)
            if counts:
                digest.update(os.fsencode(path) + f"\0{status.st_size}-{status.st_ctime_ns}\0".encode())
        return _Seen(digest.hexdigest(), changed_ns)

    def _places(self) -> Iterator[tuple[Path, bool]]:
        """Yields what is there; of folders, whose times tell what has left them, the contents do not count."""
        if not self._root.is_dir():
            yield self._root, True
        for folder, folders, files in os.walk(self._root):
            yield Path(folder), False
            below = os.path.relpath(folder, self._root)
            prefix = "" if below == "." else f"{below}/"
            folders[:] = sorted(name for name in folders if self._selection.enters(prefix + name))
            yield from ((Path(folder, name), True) for name in sorted(files) if self._selection.takes(prefix + name))
