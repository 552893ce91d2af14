"""Files anywhere that fsspec reaches: object stores, SFTP and others. Listed by the store, read to a local file.

Web addresses and local ones are other sources' (`open_files`): fsspec reports each answer of a web server that it does
not like as a missing file, which would be taken for deleted. Chained addresses (`zip::`, `filecache::`) are refused,
since they reach files of this machine. A folder that cannot be listed is a failure that covers all below it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.file_store import FileStore, Listed
from indexers.sources.folder import FolderSource
from indexers.sources.globs import Selection, split_glob
from indexers.sources.naming import shown
from indexers.sources.snapshots import temporary
from indexers.sources.source import ItemRef, Scanned, Source
from indexers.sources.spec import FilesSource as FilesSpec
from indexers.sources.spec import FolderSource as FolderSpec
from indexers.sources.web_file import WebFile

MAX_BYTES = 4 * 1024**3
_WEB = frozenset({"http", "https"})
_LOCAL = frozenset({"file", "local"})
_HOSTED = frozenset({"sftp", "ssh"})


def open_files(spec: FilesSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> Source:
    """Returns the source for the URL's scheme; nothing is connected to yet.

    Raises:
        ItemUnreadable: the URL may not be read, or a secret is not there.
        JobError: the library of its kind is not installed.
    """
    parts = urlsplit(spec.url)
    if parts.password is not None or (parts.username and parts.scheme in _WEB):
        raise ItemUnreadable("source.url", "holds credentials; use username and password_ref", "forbidden")
    if "::" in spec.url:
        raise ItemUnreadable(spec.url, "is a chained address, which is not read", "forbidden")
    if parts.scheme in _WEB:
        return WebFile(spec, access, scratch)
    if parts.scheme in _LOCAL:
        return FolderSource(_folder_spec(spec), base_folder, access, scratch)
    return FilesSource(spec, base_folder, access, scratch)


class FilesSource:
    """The files below one URL."""

    def __init__(self, spec: FilesSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> None:
        """Raises: ItemUnreadable, JobError: see `open_files`."""
        parts = urlsplit(spec.url)
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        # Of a host the store knows only the path; of a bucket, its name too.
        self._start = f"{parts.scheme}://" + (parts.netloc.rpartition("@")[2] if parts.scheme in _HOSTED else "")
        place = parts.path if parts.scheme in _HOSTED else spec.url.partition("://")[2]
        self._base, self._glob = split_glob(place)
        self._wanted = Selection([self._glob], hidden=True) if self._glob else None
        self._selection = Selection(spec.include, spec.exclude, hidden=True)
        self._scratch = scratch
        self._store = FileStore(spec, base_folder, access)

    @property
    def complete(self) -> bool:
        """True: each scan comes by everything."""
        return True

    def scan(self) -> Iterator[Scanned]:
        """Yields the files by name.

        Raises:
            SourceUnavailable: the store cannot be reached, or there is nothing at the URL.
        """
        base = self._base or "/"
        if not self._glob and (single := self._store.file(base, self._shown)) is not None:
            yield self._ref(single, PurePosixPath(single.path).name)
            return
        for found in self._store.below(base, self._shown, self._enters):
            name = _name(found.path, base)
            if found.failure:
                yield ParseFailure(shown(f"{name}/"), f"{self._uri(found.path)}/", found.failure)
            elif name and self._takes(name):
                yield self._ref(found, name) if found.is_file else SkippedFile(shown(name), "is a link or no file")

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Reads the file into the scratch folder.

        Raises:
            ItemGone: it is no longer there.
            ItemUnreadable: it may not be read, or is too large.
            SourceUnavailable: it cannot be read now.
        """
        place = os.fsdecode(unquote_to_bytes(ref.uri.removeprefix(self._start)))
        with temporary(ref.name, self._scratch) as path:
            self._store.copy(place, path, ref.name, MAX_BYTES)
            yield SourceFile(path, ref.name, ref.uri)

    def commit(self) -> None:
        """Does nothing: there is no watermark."""

    def close(self) -> None:
        """Closes the connections."""
        self._store.close()

    def _enters(self, path: str) -> bool:
        return self._selection.enters(_name(path, self._base))

    def _takes(self, name: str) -> bool:
        return self._selection.reads(name) and (self._wanted is None or self._wanted.reads(name))

    def _ref(self, found: Listed, name: str) -> ItemRef:
        return ItemRef(self._uri(found.path), shown(name), found.fingerprint, found.size)

    def _uri(self, path: str) -> str:
        return self._start + quote(os.fsencode(path), safe="/~")


def _name(path: str, base: str) -> str:
    """Returns a path below the base as a relative one."""
    return path.removeprefix(base.rstrip("/")).lstrip("/")


def _folder_spec(spec: FilesSpec) -> FolderSpec:
    """Returns the folder that a local URL stands for.

    Raises:
        ItemUnreadable: it has a glob, and so has `include`.
    """
    base, glob = split_glob(unquote(spec.url.partition("://")[2]))
    if glob and spec.include != FilesSpec.model_fields["include"].default:
        raise ItemUnreadable("source.include", "is given beside a glob in source.url; keep one of them", "forbidden")
    if not base and not glob:
        raise SourceUnavailable(spec.url, "names no folder")
    include = (glob,) if glob else spec.include
    return FolderSpec(kind="folder", path=base or "/", include=include, exclude=spec.exclude)
