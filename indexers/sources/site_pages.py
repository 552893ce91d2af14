"""The pages that earlier scans have fetched, with what is needed to ask whether they have changed."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page as it was fetched last."""

    url: str  # where it came from, after redirects
    content_type: str
    fingerprint: str
    etag: str
    modified: str
    body: Path

    @property
    def conditions(self) -> dict[str, str]:
        """The headers that ask for the page only if it has changed."""
        asked = {"if-none-match": self.etag, "if-modified-since": self.modified}
        return {name: value for name, value in asked.items() if value}


class SitePages:
    """One folder of pages, by their addresses."""

    max_bytes = 64 * 1024 * 1024

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, url: str) -> StoredPage | None:
        """Returns a page by the address that it was asked for, or that it came from; None when there is none."""
        place = self._place(url)
        try:
            about = json.loads(place.with_suffix(".json").read_text(encoding="utf-8"))
            body = self._folder / str(about.pop("body"))
            page = StoredPage(**about, body=body)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return page if body.is_file() else None

    @contextmanager
    def incoming(self) -> Iterator[Path]:
        """Gives a file for a body; what `keep` has not taken by then is removed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, place = tempfile.mkstemp(prefix=".incoming-", dir=self._folder)
        os.close(handle)
        path = Path(place)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def keep(self, asked: str, url: str, headers: Mapping[str, str], body: Path) -> StoredPage:
        """Keeps a page under the address that was asked for and the one that it came from."""
        content = body.read_bytes()
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        target = self._place(url).with_suffix(".body")
        body.replace(target)
        fingerprint = hashlib.blake2b(content, digest_size=16).hexdigest()
        etag, modified = headers.get("etag", ""), headers.get("last-modified", "")
        page = StoredPage(url, kind, fingerprint, etag, modified, target)
        about = {"url": url, "content_type": kind, "fingerprint": fingerprint, "etag": etag, "modified": modified}
        for address in {asked, url}:
            fresh = self._place(address).with_suffix(".new")
            fresh.write_text(json.dumps({**about, "body": target.name}), encoding="utf-8")
            fresh.replace(self._place(address).with_suffix(".json"))
        return page

    def forget(self, url: str) -> None:
        """Forgets a page."""
        for suffix in (".json", ".body"):
            self._place(url).with_suffix(suffix).unlink(missing_ok=True)

    def _place(self, url: str) -> Path:
        return self._folder / hashlib.blake2b(url.encode(), digest_size=16).hexdigest()
