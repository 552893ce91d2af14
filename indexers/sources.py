"""Files and folders as a stream of documents, in a stable order, with names that do not depend on the machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from indexers.parsing.dispatch import SUFFIXES, parse_file
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParseFailure, SkippedFile, SourceItem

_HIDDEN = "."


class FileSource:
    """The files under some paths. Listed when it is made; read, one at a time, while it is iterated.

    A document is named after its file relative to the path that was given; the path itself may be a file. Hidden files
    and folders are left out, links to folders are not followed.
    """

    def __init__(self, paths: Sequence[Path], options: ParseOptions | None = None) -> None:
        self._options = options or ParseOptions()
        self._files: list[tuple[SourceFile, int]] = []
        self._others: list[SourceItem] = []
        self._roots: list[str] = []
        self.read_bytes = 0  # of the files that were read so far, to show how far it has come
        for path in paths:
            self._list(path)

    @property
    def roots(self) -> tuple[str, ...]:
        """The URIs of the paths that exist, as `Indexer.run` takes them; those of folders end with a slash."""
        return tuple(self._roots)

    @property
    def file_count(self) -> int:
        """Files to read."""
        return len(self._files)

    @property
    def total_bytes(self) -> int:
        """Bytes of all files to read."""
        return sum(size for _, size in self._files)

    def __iter__(self) -> Iterator[SourceItem]:
        self.read_bytes = 0
        yield from self._others
        for file, size in self._files:
            yield from parse_file(file, self._options)
            self.read_bytes += size

    def _list(self, path: Path) -> None:
        whole = Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve would follow links, and ids would change with them
        if whole.is_dir():
            self._roots.append(f"{whole.as_uri().rstrip('/')}/")
            self._walk(whole)
        elif whole.exists():
            self._roots.append(whole.as_uri())
            self._add(whole, whole.name, given=True)
        else:
            self._others.append(ParseFailure(str(path), whole.as_uri(), "does not exist; check the path"))

    def _walk(self, root: Path) -> None:
        def failed(error: OSError) -> None:
            place = Path(error.filename)
            # Its documents are kept: the whole root is, since nobody knows which they are.
            self._roots = [known for known in self._roots if not place.as_uri().startswith(known)]
            reason = f"cannot be listed: {error.strerror}; nothing is removed under {root.name}"
            self._others.append(ParseFailure(str(place), place.as_uri(), reason))

        for folder, folders, names in os.walk(root, onerror=failed):
            folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
            for name in sorted(names):
                if not name.startswith(_HIDDEN):
                    path = Path(folder, name)
                    self._add(path, path.relative_to(root).as_posix(), given=False)

    def _add(self, path: Path, name: str, given: bool) -> None:
        name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if not given and path.suffix.lower() not in SUFFIXES:
            self._others.append(SkippedFile(name, f"suffix {path.suffix or 'none'} is not read"))
            return
        try:
            found = path.stat()
        except OSError as error:
            self._others.append(ParseFailure(name, path.as_uri(), f"cannot be read: {error.strerror}"))
            return
        if stat.S_ISREG(found.st_mode):
            self._files.append((SourceFile(path, name, path.as_uri()), found.st_size))
        else:
            self._others.append(SkippedFile(name, "is no regular file"))
