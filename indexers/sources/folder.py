"""Files of this machine: a folder or one file.

What cannot be listed is never taken for deleted: a root that is not there is unavailable, an unreadable folder is a
failure that covers all below it. Links to files are read, links to folders are not followed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.globs import Selection
from indexers.sources.naming import file_path, file_uri, shown
from indexers.sources.snapshots import snapshot
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import FolderSource as FolderSpec
from indexers.sources.watching import FolderWatch

_BLOCK_BYTES = 1024 * 1024
_GONE = (errno.ENOENT, errno.ENOTDIR)


class FolderSource:
    """The files below a folder, by globs."""

    def __init__(self, spec: FolderSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> None:
        """Raises: ItemUnreadable: the folder lies outside what may be read."""
        self._root = Path(os.path.abspath(base_folder / spec.path))  # noqa: PTH100  links stay, dots go
        self._access = access
        self._scratch = scratch
        self._selection = Selection(spec.include, spec.exclude)
        self._by_content = spec.detect == "content"
        self._watch = FolderWatch(self._root, self._selection)
        access.path(self._root)

    @property
    def complete(self) -> bool:
        """True: each scan comes by everything."""
        return True

    def scan(self) -> Iterator[Scanned]:
        """Yields the files by name, folder by folder.

        Raises:
            SourceUnavailable: the folder is not there, or cannot be read.
        """
        self._watch.mark()
        if stat.S_ISREG(self._root_mode()):
            yield from self._file(self._root, self._root.name)
            return
        yield from self._folder(self._root, "")
        # A root that went away meanwhile, as a network drive does, has made all the rest look deleted.
        self._root_mode()

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Gives the file itself; where access is bounded a copy, so that no link can be put in its place meanwhile.

        Raises:
            ItemGone: it is no longer there.
            ItemUnreadable: it may not be read, or lies elsewhere.
            SourceUnavailable: the disk does not give it now.
        """
        path = file_path(ref.uri)
        if not path.is_relative_to(self._root):
            raise ItemUnreadable(ref.name, "is no file of this source", "forbidden")
        with ExitStack() as stack:
            with _errors(ref.name, self._root):
                path.stat()
                if self._access.file_roots is not None:
                    path = stack.enter_context(snapshot(path, ref.name, self._access, self._scratch))
            yield SourceFile(path, ref.name, ref.uri)

    def commit(self) -> None:
        """Does nothing: there is no watermark."""

    def wait(self, timeout_s: float) -> bool:
        """Waits until something has changed since the last scan began; True at once when there was none."""
        return self._watch.wait(timeout_s)

    def close(self) -> None:
        """Stops watching."""
        self._watch.close()

    def _root_mode(self) -> int:
        try:
            self._access.path(self._root)
            mode = self._root.stat().st_mode
        except OSError as error:
            raise SourceUnavailable(shown(str(self._root)), f"cannot be read: {error.strerror}") from error
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise SourceUnavailable(shown(str(self._root)), "is neither a folder nor a file")
        return mode

    def _folder(self, folder: Path, prefix: str) -> Iterator[Scanned]:
        """Walks without recursion, since folders may nest deeper than calls can."""
        waiting = [self._entries(folder, prefix)]
        while waiting:
            entry = next(waiting[-1], None)
            if entry is None:
                waiting.pop()
            elif isinstance(entry, ParseFailure):
                yield entry
            elif entry.is_dir(follow_symlinks=False):
                name = os.path.relpath(entry.path, self._root)
                if self._selection.enters(name):
                    waiting.append(self._entries(Path(entry.path), f"{name}/"))
            else:
                name = os.path.relpath(entry.path, self._root)
                if self._selection.takes(name):
                    yield from self._file(Path(entry.path), name)

    def _entries(self, folder: Path, prefix: str) -> Iterator[os.DirEntry[str] | ParseFailure]:
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            if not prefix:
                raise SourceUnavailable(shown(str(folder)), f"cannot be listed: {error.strerror}") from error
            if error.errno not in _GONE:
                reason = f"the folder cannot be listed: {error.strerror}"
                yield ParseFailure(shown(prefix), f"{file_uri(folder)}/", reason)
            return
        yield from entries

    def _file(self, path: Path, name: str) -> Iterator[Scanned]:
        uri, name = file_uri(path), shown(name)
        try:
            if path.is_symlink():
                self._access.path(path)
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                yield ItemRef(uri, name, self._fingerprint(path, status), status.st_size)
            else:
                is_folder = stat.S_ISDIR(status.st_mode)
                reason = "is a link to a folder, which is not followed" if is_folder else "is no regular file"
                yield SkippedFile(name, reason)
        except ItemUnreadable as refused:
            yield ParseFailure(name, uri, f"is a link that {refused.reason}")
        except OSError as error:
            if path.is_symlink():
                yield ParseFailure(name, uri, f"is a link that leads nowhere or cannot be read: {error.strerror}")
            elif error.errno not in _GONE:
                yield ParseFailure(name, uri, f"cannot be read: {error.strerror}")

    def _fingerprint(self, path: Path, status: os.stat_result) -> str:
        if not self._by_content:
            return f"modified:{status.st_size}-{status.st_mtime_ns}"
        digest = hashlib.blake2b(digest_size=16)
        with path.open("rb") as opened:
            while block := opened.read(_BLOCK_BYTES):
                digest.update(block)
        return f"content:{digest.hexdigest()}"


@contextmanager
def _errors(name: str, root: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        if not root.exists():
            raise SourceUnavailable(shown(str(root)), "is not there now") from error
        raise ItemGone(name, "is no longer there") from error
    except PermissionError as error:
        raise ItemUnreadable(name, f"cannot be read: {error.strerror}", "forbidden") from error
    except OSError as error:
        raise SourceUnavailable(name, f"cannot be read now: {error.strerror}") from error
