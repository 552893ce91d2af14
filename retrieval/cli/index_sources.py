"""Keeps files of two places from replacing each other: ids are paths relative to the path given, so they may be equal.

A stored document that was read from another file makes the new one of the same id fail, unless that is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from indexers.parsing.parsed import ParsedDocument, ParseFailure, SourceItem

if TYPE_CHECKING:
    from indexers.pruning import Listed

_PAGE = 1_000
_FILE = "file://"


async def same_sources(index: Listed, items: Iterable[SourceItem], roots: Iterable[str]) -> Iterator[SourceItem]:
    """Returns the items, with failures for documents whose ids are taken by documents of other files.

    `roots` are the URIs of the paths that are read; they keep what is remembered small, since most stored documents
    are where their ids say.

    Raises:
        IndexUnavailable: the store cannot be reached.
    """
    folders = [root for root in roots if root.endswith("/")]
    taken: dict[str, str] = {}
    token = ""
    while True:
        page = await index.list_documents(_PAGE, token)
        for one in page.documents:
            name, file = one.document_id, _file(one.source_uri)
            if file.startswith(_FILE) and not any(file == folder + quote(name) for folder in folders):
                taken[name] = file
        token = page.next_page_token
        if not token:
            return _checked(items, taken)


def _checked(items: Iterable[SourceItem], taken: dict[str, str]) -> Iterator[SourceItem]:
    for item in items:
        if not isinstance(item, ParsedDocument):
            yield item
            continue
        document = item.document
        new, old = _file(document.source_uri), taken.get(document.document_id)
        if old is None or old == new or not new.startswith(_FILE):
            yield item
        else:
            reason = (
                f"{new} would replace the document of {old}, which has the same id; index the folder above both, "
                "use another collection, or replace it with --replace-sources"
            )
            yield ParseFailure(document.document_id, document.source_uri, reason)


def _file(source_uri: str) -> str:
    """Returns the URI of the file: a row of a file has its place after a `#`."""
    return source_uri.partition("#")[0]
