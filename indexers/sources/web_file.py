"""The one file at a web address. What it holds says whether it has changed; whole sites are another source's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.parsing.options import SourceFile
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.fetching import Fetcher
from indexers.sources.snapshots import temporary
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import FilesSource as FilesSpec

MAX_BYTES = 4 * 1024**3


class WebFile:
    """A file of a web server."""

    def __init__(self, spec: FilesSpec, access: SourceAccess, scratch: Path) -> None:
        """Raises: ItemUnreadable: the address may not be read."""
        guard = AddressGuard(access.private(asked=spec.allow_private))
        parts = guard.check(spec.url)
        self._url = spec.url
        self._name = PurePosixPath(unquote(parts.path)).name or "index.html"
        self._uri = str(parts.copy_with(query=None, fragment=None))  # a query may hold a secret
        self._scratch = scratch
        self._fetcher = Fetcher(guard, spec.timeout_s, "headrace")

    @property
    def complete(self) -> bool:
        """True: there is one file."""
        return True

    def scan(self) -> Iterator[Scanned]:
        """Yields the file.

        Raises:
            SourceUnavailable: it cannot be had; the same when there is none, since nothing else tells of an outage.
            ItemUnreadable: its address may not be connected to, or it is too large.
        """
        with temporary(self._name, self._scratch) as path:
            status = self._fetcher.fetch(self._url, path, MAX_BYTES).status
            if status != 200:
                raise SourceUnavailable(self._uri, f"answers {status}")
            with path.open("rb") as opened:
                digest = hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
            yield ItemRef(self._uri, self._name, f"content:{digest}", path.stat().st_size)

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Fetches the file into the scratch folder.

        Raises:
            ItemGone, ItemUnreadable, SourceUnavailable: see `Source.open`.
        """
        with temporary(ref.name, self._scratch) as path:
            status = self._fetcher.fetch(self._url, path, MAX_BYTES).status
            if status in (404, 410):
                raise ItemGone(ref.name, f"answers {status}")
            if status != 200:
                raise ItemUnreadable(ref.name, f"answers {status}", "forbidden")
            yield SourceFile(path, ref.name, ref.uri)

    def commit(self) -> None:
        """Does nothing: there is no watermark."""

    def close(self) -> None:
        """Closes the connections."""
        self._fetcher.close()
