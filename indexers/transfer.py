"""Carries a collection from one kind of index to another as it is: vectors, terms and token codes too.

Nothing is embedded anew. What the target holds already with the same fingerprint is passed over, so a transfer that
broke off goes on, and one that is run again brings what has changed since. It ends with a comparison of both sides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from indexers.errors import IndexCorrupt
from indexers.index import Index
from indexers.types import EncodedDocument, StoredDocument

Export: TypeAlias = Callable[[str, int], Awaitable[list[EncodedDocument]]]
"""Returns up to so many documents whose ids are greater than one, by id."""

_DOCUMENTS_A_BATCH = 32
_PASSES = 3  # over the source, for what is written there meanwhile
_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class TransferReport:
    """What a transfer has done."""

    documents: int  # that both sides hold
    chunks: int
    written: int
    removed: int  # from the target, since the source does not hold them


async def transfer(
    export: Export, source: Index, target: Index, *, prune: bool, progress: Callable[[int], None] | None = None
) -> TransferReport:
    """Brings all documents of the source into the target, folds them into a generation, and compares both.

    `progress` hears how many documents were looked at. With `prune`, what only the target holds is removed from it.

    Raises:
        IndexCorrupt: afterwards the two differ; says in what.
    """
    written = removed = 0
    for _ in range(_PASSES):
        changed = await _copied(export, target, progress)
        gone = await _removed(source, target) if prune else 0
        written, removed = written + changed, removed + gone
        if not changed + gone:
            break
    await target.build()
    await _compare(source, target)
    counts = await target.count(None)
    return TransferReport(counts.documents, counts.chunks, written, removed)


async def _copied(export: Export, target: Index, progress: Callable[[int], None] | None) -> int:
    after, seen, written = "", 0, 0
    while batch := await export(after, _DOCUMENTS_A_BATCH):
        after = batch[-1].document.document_id
        stored = await target.look_up([one.document.document_id for one in batch])
        missing = [one for one in batch if not _same(one, stored)]
        if missing:
            await target.upsert(missing)
        written, seen = written + len(missing), seen + len(batch)
        if progress is not None:
            progress(seen)
    return written


def _same(document: EncodedDocument, stored: dict[str, StoredDocument]) -> bool:
    there = stored.get(document.document.document_id)
    return there is not None and (there.fingerprint, there.chunk_count) == (document.fingerprint, len(document.chunks))


async def _removed(source: Index, target: Index) -> int:
    removed = 0
    async for ids in _pages(target):
        known = await source.look_up(ids)
        if gone := [one for one in ids if one not in known]:
            removed += await target.delete(gone)
    return removed


async def _compare(source: Index, target: Index) -> None:
    """Compares counts, then every document's fingerprint and number of chunks."""
    ours, theirs = await source.count(None), await target.count(None)
    if ours != theirs:
        held = f"{theirs.documents} documents in {theirs.chunks} chunks, not {ours.documents} in {ours.chunks}"
        raise _differ(target, held)
    async for ids in _pages(source):
        wanted, found = await source.look_up(ids), await target.look_up(ids)
        differing = [one for one in ids if _told(wanted, one) != _told(found, one)]
        if differing:
            raise _differ(target, f"{len(differing)} documents that differ, the first is {differing[0]!r}")


def _told(stored: dict[str, StoredDocument], document_id: str) -> tuple[str, str, int] | None:
    one = stored.get(document_id)
    return None if one is None else (one.fingerprint, one.owner, one.chunk_count)


async def _pages(index: Index) -> AsyncIterator[list[str]]:
    token = ""
    while True:
        page = await index.list_documents(_LISTED, token)
        if page.documents:
            yield [one.document_id for one in page.documents]
        if not (token := page.next_page_token):
            return


def _differ(target: Index, holds: str) -> IndexCorrupt:
    key = target.definition.key
    reason = f"after the transfer it holds {holds}; stop writing to the source and transfer again, or prune"
    return IndexCorrupt(f"collection {key.collection!r}", reason)
