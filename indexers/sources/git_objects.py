"""Reads trees and blobs of a local Git folder, both as streams."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from indexers.errors import SourceUnavailable
from indexers.sources.git_program import GitProgram

_BLOCK_BYTES = 1024 * 1024
_KINDS = {b"120000": "is a link", b"160000": "is a submodule"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a tree; `kind` says what it is when it is none."""

    path: bytes
    blob: str
    size: int
    kind: str


def files_of(git: GitProgram, commit: str, name: str) -> Iterator[Entry]:
    """Yields all files of a commit, by name.

    Raises:
        SourceUnavailable: the folder cannot be read.
    """
    with git.started(["ls-tree", "-r", "-z", "-l", "--full-tree", commit], name) as child:
        assert child.stdout is not None
        rest = b""
        while block := child.stdout.read(_BLOCK_BYTES):
            *lines, rest = (rest + block).split(b"\0")
            yield from map(_entry, lines)


def _entry(line: bytes) -> Entry:
    about, _, path = line.partition(b"\t")
    mode, _, blob, size = about.split()
    return Entry(path, blob.decode(), int(size) if size.isdigit() else 0, _KINDS.get(mode, ""))


class Blobs:
    """One running program that gives blobs. One thread at a time."""

    def __init__(self, git: GitProgram, name: str) -> None:
        self._stack = ExitStack()
        self._name = name
        self._child: subprocess.Popen[bytes] = self._stack.enter_context(
            git.started(["cat-file", "--batch-command"], name)
        )

    def write(self, blob: str, into: Path, max_bytes: int) -> int | None:
        """Writes a blob to a file, unless it is too large; returns its size, None when there is no such blob.

        Raises:
            SourceUnavailable: the program has ended.
        """
        found = self._ask("info", blob)
        if found is None or found > max_bytes or (size := self._ask("contents", blob)) is None:
            return found
        with into.open("wb") as written:
            left = size
            while left:
                block = self._out.read(min(left, _BLOCK_BYTES))
                if not block:
                    raise SourceUnavailable(self._name, "the copy of the repository ended in the middle of a file")
                written.write(block)
                left -= len(block)
        self._out.read(1)
        return size

    def close(self) -> None:
        """Ends the program."""
        try:
            self._stack.close()
        except (SourceUnavailable, BrokenPipeError):
            return  # it had ended by itself

    @property
    def _out(self) -> IO[bytes]:
        assert self._child.stdout is not None
        return self._child.stdout

    def _ask(self, command: str, blob: str) -> int | None:
        """Returns the size that the answer says; None for what is not there or is no blob."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(f"{command} {blob}\n".encode())
            self._child.stdin.flush()
        except OSError as error:
            raise SourceUnavailable(self._name, "the copy of the repository can no longer be read") from error
        answer = self._out.readline().split()
        if not answer:
            raise SourceUnavailable(self._name, "the copy of the repository can no longer be read")
        return int(answer[2]) if len(answer) == 3 and answer[1] == b"blob" else None
