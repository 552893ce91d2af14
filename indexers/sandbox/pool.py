"""Parses files in child processes that are bounded: whatever a file does, it costs that file and nothing else.

The processes live long, since starting one takes a third of a second, and read one file at a time. A file that takes
too long, too much memory, or its process with it ends as one failure with a reason; what it gave before stays, and
the next file gets a fresh process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Condition

from indexers.errors import SourceUnavailable
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParseFailure, SourceItem
from indexers.sandbox.limits import SandboxLimits
from indexers.sandbox.process import Child, ChildLost

__all__ = ["ParserPool", "SandboxLimits"]

_LOOKED_UP_S = 1.0


class ParserPool:
    """A few child processes that parse; each is started when it is first needed. Threads may share it."""

    def __init__(self, limits: SandboxLimits, processes: int = 1) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-parsing-", ignore_cleanup_errors=True)
        self._children = [Child(limits, Path(self._folder.name)) for _ in range(max(1, processes))]
        self._free = list(self._children)
        self._changed = Condition()
        self._closed = False

    def parse(self, file: SourceFile, options: ParseOptions) -> Iterator[SourceItem]:
        """Yields the documents of a file and what failed of it, as they are parsed; waits for a free process.

        A process is taken until the last item, or until the generator is closed. It runs ahead of whoever reads by
        what a pipe holds. A thread that waits for a second file while it has a first one open may wait for itself.

        Raises:
            SourceUnavailable: no process can be started, or the pool was closed meanwhile.
        """
        # Names that are no valid UTF-8 come from the system with surrogates, which cannot be stored or shown.
        file = replace(file, name=file.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        child = self._take(file.name)
        try:
            yield from child.parse(file, options)
        except ChildLost as lost:
            if self._closed:
                raise self._closed_error(file.name) from lost
            yield ParseFailure(file.name, file.uri, lost.reason, lost.kind)
        finally:
            self._give_back(child)

    def warm(self) -> None:
        """Starts all processes and waits until they are ready.

        Raises:
            SourceUnavailable: one does not get there.
        """
        with self._changed:
            free, self._free = self._free, []
        try:
            with ThreadPoolExecutor(len(self._children)) as threads:
                list(threads.map(Child.greet, free))
        finally:
            for child in free:
                self._give_back(child)

    def pids(self) -> tuple[int, ...]:
        """Returns the numbers of the processes that are running."""
        return tuple(pid for child in self._children if (pid := child.pid))

    def close(self) -> None:
        """Ends all processes; whoever is reading a file gets SourceUnavailable. A second call does nothing."""
        with self._changed:
            self._closed = True
            idle, self._free = self._free, []
            self._changed.notify_all()
        for child in self._children:
            child.kill()
        for child in idle:
            child.end()
        self._folder.cleanup()

    def _take(self, name: str) -> Child:
        with self._changed:
            while not self._free and not self._closed:
                self._changed.wait(_LOOKED_UP_S)
            if self._closed:
                raise self._closed_error(name)
            return self._free.pop()  # the one that was used last, whose memory is warm

    def _give_back(self, child: Child) -> None:
        child.settle()
        with self._changed:
            closed = self._closed
            if not closed:
                self._free.append(child)
                self._changed.notify()
        if closed:
            child.end()

    @staticmethod
    def _closed_error(name: str) -> SourceUnavailable:
        return SourceUnavailable(name, "parsing was stopped")
