"""The files that `headrace index` was pointed at, and the documents in them as they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.types import Metadata


class Files:
    """The files under some paths, in order of their names; listed when it is made, read while it is iterated.

    A document is named after its file relative to the path given, which may be a file itself; a file that is given
    twice is read once. Hidden files and folders
    are left out, links to folders are not followed. `metadata` is added to every document, stronger than its own.
    """

    def __init__(self, paths: Sequence[Path], metadata: Metadata) -> None:
        self._metadata = metadata
        self._listed: set[Path] = set()
        self._named: set[Path] = set()  # the files given by themselves
        self._files: list[tuple[SourceFile, int]] = []
        self._failures: list[ParseFailure] = []
        self._roots: list[str] = []
        self._read_bytes = 0
        self._read_characters = 0
        for path in paths:
            self._list(path)

    @property
    def roots(self) -> tuple[str, ...]:
        """The URIs of the paths that are there; a folder's ends with a slash."""
        return tuple(self._roots)

    @property
    def total_bytes(self) -> int:
        """The size of all files."""
        return sum(size for _, size in self._files)

    def done_bytes(self) -> int:
        """Returns how much was read; inside a large file its characters stand for bytes."""
        return max(self._read_bytes, min(self._read_characters, self.total_bytes))

    def __iter__(self) -> Iterator[SourceItem]:
        yield from self._failures
        for file, size in self._files:
            for item in parse_file(file):
                yield self._counted(item) if isinstance(item, ParsedDocument) else self._asked_for(item, file)
            self._read_bytes += size

    def _counted(self, item: ParsedDocument) -> ParsedDocument:
        document = item.document
        self._read_characters += len(document.text)
        metadata = {**document.metadata, **self._metadata}
        return replace(item, document=replace(document, title=_valid(document.title), metadata=metadata))

    def _asked_for(self, item: SourceItem, file: SourceFile) -> SourceItem:
        """Makes a failure of a skipped file when it was given by itself: somebody wanted it to be read."""
        if isinstance(item, SkippedFile) and file.path in self._named:
            return ParseFailure(item.path, file.uri, item.reason)
        return item

    def _list(self, path: Path) -> None:
        root = path.resolve()
        if root.is_dir():
            self._roots.append(f"{root.as_uri().rstrip('/')}/")
            self._walk(root)
        elif root.exists():
            self._roots.append(root.as_uri())
            self._named.add(root)
            self._add(root, path.name)
        else:
            self._failures.append(
                ParseFailure(_valid(str(path)), root.as_uri(), "there is no such file; check the path")
            )

    def _walk(self, root: Path) -> None:
        def failed(error: OSError) -> None:
            folder = Path(error.filename)
            reason = f"cannot be listed: {error.strerror}; what was indexed from it is kept"
            self._failures.append(ParseFailure(_valid(str(folder)), f"{folder.as_uri()}/", reason))

        for folder, folders, names in os.walk(root, onerror=failed):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if not name.startswith("."):
                    path = Path(folder, name)
                    self._add(path, path.relative_to(root).as_posix())

    def _add(self, path: Path, name: str) -> None:
        if path in self._listed:
            return
        self._listed.add(path)
        try:
            size = path.stat().st_size
        except OSError:
            size = 0  # reading will say what is wrong
        self._files.append((SourceFile(path, name, path.as_uri()), size))


def _valid(name: str) -> str:
    """Returns a name as valid Unicode: one that is no UTF-8 comes from the system with surrogates."""
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in name)
