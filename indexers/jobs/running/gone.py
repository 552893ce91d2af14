"""Deletes what is gone at the source: decided against the index, asked about when it is much, then proven.

What the job owns in the index and what did not come by in a whole run is gone, unless the item that it came from could
not be read: nothing is known of that. A tombstone is recorded first, so that a crash leaves the intention behind; after
the deletion neither the document nor a chunk of it may be found.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from indexers.errors import TargetUnavailable
from indexers.jobs.running.known import Known
from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.spec import JobSpec
from indexers.jobs.state import DocumentRecord, DocumentState
from indexers.pruning import SeenSources

T = TypeVar("T")

_PAGE = 1_000
_DELETE = 100  # documents of one call


@dataclass(frozen=True, slots=True)
class Gone:
    """The documents that are gone, and how many the job owns with them."""

    documents: tuple[tuple[str, str], ...]  # id, source URI
    owned: int
    write_sequence: int  # before they were listed


class Deleting:
    """Finds and deletes what is gone, for one run."""

    def __init__(self, parts: RunParts, spec: JobSpec, run_id: str, known: Known) -> None:
        self._parts = parts
        self._spec = spec
        self._run_id = run_id
        self._known = known
        self._reaching = Reaching(parts.patience_s)

    async def find(self, named: Sequence[str] = (), *, only_named: bool = False) -> Gone:
        """Lists what is gone: what did not come by, and what the source names as deleted.

        With `only_named` nothing else is: the source has listed changes only.
        """
        looked = await self._reach(partial(self._parts.target.look, []))
        names = {self._spec.metadata.id_prefix + name for name in named}
        kept = await self._kept()
        gone: list[tuple[str, str]] = []
        owned, after = 0, ""
        while page := await self._reach(partial(self._parts.target.owned, self._spec.name, after, _PAGE)):
            ids = [name for name, _ in page]
            seen = set(ids) if only_named else await self._reach(partial(self._parts.store.seen, self._run_id, ids))
            gone += [one for one in page if one[0] in names or (one[0] not in seen and not kept.keeps(one[1]))]
            owned, after = owned + len(page), ids[-1]
        return Gone(tuple(gone), owned, looked.write_sequence)

    def too_many(self, gone: Gone) -> str:
        """Returns why somebody has to be asked before so much is deleted; empty when not."""
        limits, count = self._spec.limits, len(gone.documents)
        if count <= max(limits.shrink_documents, limits.shrink_share * gone.owned):
            return ""
        return (
            f"{count} of {gone.owned} documents are no longer at the source, which is more than limits.shrink_share "
            "allows; none was deleted: check the source, then run again with --allow-shrink"
        )

    async def delete(self, gone: Gone) -> int:
        """Deletes the documents and proves it; returns how many are gone now.

        Raises:
            TargetUnavailable: a deleted document, or a chunk of one, can still be found.
        """
        deleted = 0
        for start in range(0, len(gone.documents), _DELETE):
            deleted += await self._delete(gone.documents[start : start + _DELETE], gone.write_sequence)
        return deleted

    async def _delete(self, documents: Sequence[tuple[str, str]], since: int) -> int:
        target, ids = self._parts.target, [name for name, _ in documents]
        await self._record(documents, DocumentState.DELETING)
        chunks = await self._reach(partial(target.chunk_ids, ids))
        await self._reach(partial(target.delete, ids, since))
        stored = (await self._reach(partial(target.look, ids))).documents
        rewritten = [one for one in documents if one[0] in stored and stored[one[0]].write_sequence > since]
        proven = [one for one in documents if one not in rewritten]
        theirs = set(await self._reach(partial(target.chunk_ids, [name for name, _ in rewritten])))
        present = set(await self._reach(partial(target.present, chunks))) - theirs
        if present or any(name in stored for name, _ in proven):
            reason = "documents that were deleted can still be found; run the job again, and report this if it stays so"
            raise TargetUnavailable(self._spec.collection, reason)
        await self._record(proven, DocumentState.DELETED)
        await self._record(rewritten, DocumentState.SKIPPED, "was written by somebody else meanwhile")
        self._known.forget(name for name, _ in proven)
        return len(proven)

    async def _kept(self) -> SeenSources:
        """Returns the items of which nothing is known: those that failed, and those with a row that failed."""
        kept = SeenSources()
        for uri in await self._reach(partial(self._parts.store.failed_items, self._run_id)):
            kept.keep(uri)
        after = ""
        states = (DocumentState.FAILED,)
        while page := await self._reach(partial(self._parts.store.documents, self._run_id, states, after)):
            for one in page:
                kept.keep(one.item_uri)
            after = page[-1].document_id
        return kept

    async def _record(self, documents: Sequence[tuple[str, str]], state: DocumentState, reason: str = "") -> None:
        if documents:
            records = [DocumentRecord(name, "", state, reason=reason) for name, _ in documents]
            await self._reach(partial(self._parts.store.record, self._run_id, self._parts.worker, records))

    async def _reach(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self._reaching.reach(call)
