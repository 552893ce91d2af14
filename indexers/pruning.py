"""Removes the documents whose files are gone: those under a root that a whole run over that root did not come by.

Careful by design: a file that could not be read keeps what was indexed from it, documents from elsewhere are never
touched, and a run that saw no document at all removes nothing, since a folder that is not mounted looks just so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from indexers.reports import Tally
from indexers.types import DocumentPage

_PAGE = 1_000
_DELETE = 100  # ids of one call


class SeenSources:
    """The ids and the unreadable files of a run, as hashes, so that a million of them take little memory."""

    def __init__(self) -> None:
        self._ids: set[bytes] = set()
        self._kept: set[bytes] = set()
        self._kept_folders: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._ids)

    def __contains__(self, document_id: str) -> bool:
        return _hash(document_id) in self._ids

    def add(self, document_id: str) -> bool:
        """Notes a document that came by; False when it had come before."""
        before = len(self._ids)
        self._ids.add(_hash(document_id))
        return len(self._ids) > before

    def keep(self, source_uri: str) -> None:
        """Notes a file whose documents must stay as they are, or a folder, with a slash at its end."""
        if source_uri.endswith("/"):
            self._kept_folders.append(source_uri)
        else:
            self._kept.add(_hash(_file(source_uri)))

    def keeps(self, source_uri: str) -> bool:
        """Tells whether the document's file, or a folder that it is in, was noted by `keep`."""
        in_folder = any(source_uri.startswith(folder) for folder in self._kept_folders)
        return in_folder or _hash(_file(source_uri)) in self._kept


class Listed(Protocol):
    """What pruning asks of a collection: any Index, or one behind a server."""

    async def list_documents(self, page_size: int, page_token: str) -> DocumentPage:
        """Lists documents ordered by id."""
        ...

    async def delete(self, document_ids: Sequence[str]) -> int:
        """Deletes by id and returns how many were there."""
        ...


async def prune(index: Listed, roots: Sequence[str], seen: SeenSources, tally: Tally) -> None:
    """Deletes what is under the roots, was not seen and need not be kept. A folder's root ends with a slash.

    Raises:
        IndexUnavailable: the store cannot be reached.
    """
    if not roots:
        return
    if not seen:
        reason = "nothing was found there, so nothing was removed; delete the documents or the collection yourself"
        tally.warn(", ".join(roots), reason)
        return
    gone = await _gone(index, roots, seen)
    for start in range(0, len(gone), _DELETE):
        tally.remove(await index.delete(gone[start : start + _DELETE]))


async def _gone(index: Listed, roots: Sequence[str], seen: SeenSources) -> list[str]:
    gone: list[str] = []
    token = ""
    while True:
        page = await index.list_documents(_PAGE, token)
        gone += [
            summary.document_id
            for summary in page.documents
            if summary.document_id not in seen
            and not seen.keeps(summary.source_uri)
            and any(_is_under(summary.source_uri, root) for root in roots)
        ]
        token = page.next_page_token
        if not token:
            return gone


def _is_under(source_uri: str, root: str) -> bool:
    return source_uri.startswith(root) if root.endswith("/") else _file(source_uri) == root


def _file(source_uri: str) -> str:
    """Returns the URI of the file: a row of a file has its place after a `#`."""
    return source_uri.partition("#")[0]


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
