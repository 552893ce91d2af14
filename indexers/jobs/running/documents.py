"""The way of a batch of parsed documents into the collection: compare, add, write, read back; each step is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from indexers.errors import InvalidInput
from indexers.jobs.running.adding import Adding, NotAdded
from indexers.jobs.running.known import Known, KnownDocument
from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.preparing import Parsed, Prepared, Preparing
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.running.settled import Settled, failed, skipped, unchanged
from indexers.jobs.state import DocumentRecord, DocumentState
from indexers.jobs.target import Looked
from indexers.reports import DocumentOutcome, DocumentStatus
from indexers.types import Document, StoredDocument


@dataclass(frozen=True, slots=True)
class Writable:
    """A document as it is to be written."""

    prepared: Prepared
    document: Document
    warnings: tuple[str, ...]


class DocumentWriting:
    """Writes the documents of one run, a batch at a time; several batches may be under way at once."""

    def __init__(self, parts: RunParts, preparing: Preparing, adding: Adding, known: Known, run_id: str) -> None:
        self._parts = parts
        self._preparing = preparing
        self._adding = adding
        self._known = known
        self._run_id = run_id
        self._reaching = Reaching(parts.patience_s)

    async def write(self, batch: Sequence[Parsed]) -> list[Settled]:
        """Brings all documents of the batch into the collection and says what became of each, in any order.

        Raises:
            TargetUnavailable, IndexUnavailable, JobStoreUnavailable: out of reach for longer than is bearable.
            IndexerError: the target does not take the work.
        """
        prepared, settled = await asyncio.to_thread(self._preparing.prepare, batch)
        await self._record(parsed_record(one) for one in prepared)
        looked = await self._look([one.name for one in prepared])
        new, found = self._compare(prepared, looked)
        writable, added = await self._add(new, looked)
        settled = [*settled, *found, *added, *await self._write(writable)]
        await self._record(one.record for one in settled if not one.again)
        self._known.keep_documents(
            {one.record.document_id: KnownDocument(one.digest, one.record.fingerprint) for one in settled if one.digest}
        )
        return settled

    def _compare(self, prepared: Sequence[Prepared], looked: Looked) -> tuple[list[Prepared], list[Settled]]:
        """Tells what may have to be written from what is stored already, or belongs to another job."""
        known = self._known.documents([one.name for one in prepared])
        new: list[Prepared] = []
        settled: list[Settled] = []
        for one in prepared:
            stored, before = looked.documents.get(one.name), known.get(one.name)
            if stored is not None and stored.owner not in ("", one.document.owner):
                reason = f"job {stored.owner!r} has a document of this id; give this job an id_prefix"
                settled.append(failed(one.item, one.name, reason, "same_id"))
            elif stored and before and (before.digest, before.fingerprint) == (one.digest, stored.fingerprint):
                settled.append(unchanged(one, stored.fingerprint))
            else:
                new.append(one)
        return new, settled

    async def _add(self, new: Sequence[Prepared], looked: Looked) -> tuple[list[Writable], list[Settled]]:
        """Adds what a detector and models say; what is stored just so is not written again."""
        writable: list[Writable] = []
        settled: list[Settled] = []
        added = await self._adding.add([one.document for one in new]) if new else []
        for one, result in zip(new, added, strict=True):
            if isinstance(result, NotAdded):
                settled.append(replace(skipped(one, result.reason, "unavailable"), again=result.reason))
                continue
            try:
                made = Writable(one, self._preparing.checked(result.document), one.warnings + result.warnings)
            except InvalidInput as error:
                settled.append(failed(one.item, one.name, str(error), "invalid"))
                continue
            stored, fingerprint = looked.documents.get(one.name), self._parts.target.fingerprint(made.document)
            if stored is not None and stored.fingerprint == fingerprint:
                settled.append(unchanged(one, fingerprint, result.warnings))
            else:
                writable.append(made)
        return writable, settled

    async def _write(self, writable: Sequence[Writable]) -> list[Settled]:
        if not writable:
            return []
        documents = [one.document for one in writable]
        since = min(one.prepared.item.since for one in writable)
        report = await self._reaching.reach(lambda: self._parts.target.write(documents, since))
        await self._record(written_record(one, outcome) for one, outcome in zip(writable, report.outcomes, strict=True))
        looked = await self._look([one.prepared.name for one in writable])
        return [proven(one, outcome, looked) for one, outcome in zip(writable, report.outcomes, strict=True)]

    async def _look(self, document_ids: Sequence[str]) -> Looked:
        return await self._reaching.reach(lambda: self._parts.target.look(document_ids))

    async def _record(self, records: Iterable[DocumentRecord | None]) -> None:
        listed = [record for record in records if record is not None]
        if listed:
            await self._reaching.reach(lambda: self._parts.store.record(self._run_id, self._parts.worker, listed))


def _is_what_was_written(stored: StoredDocument, outcome: DocumentOutcome) -> bool:
    return (stored.fingerprint, stored.chunk_count) == (outcome.fingerprint, outcome.chunk_count)


def parsed_record(one: Prepared) -> DocumentRecord:
    """Returns the record of a document that has come out of its item."""
    lease = one.item.lease
    return DocumentRecord(one.name, lease.uri, DocumentState.PARSED, attempt=lease.attempt)


def written_record(one: Writable, outcome: DocumentOutcome) -> DocumentRecord | None:
    """Returns the record of a document whose write was acknowledged; None for another outcome."""
    if outcome.status is not DocumentStatus.WRITTEN:
        return None
    return _record_of(one, outcome, DocumentState.WRITTEN)


def _record_of(one: Writable, outcome: DocumentOutcome, state: DocumentState) -> DocumentRecord:
    return DocumentRecord(
        outcome.document_id,
        one.prepared.item.lease.uri,
        state,
        fingerprint=outcome.fingerprint,
        chunk_count=outcome.chunk_count,
        token_count=outcome.token_count,
        attempt=one.prepared.item.lease.attempt,
        warnings=(*one.warnings, *outcome.warnings),
    )


def proven(one: Writable, outcome: DocumentOutcome, looked: Looked) -> Settled:
    """Says what became of a document that was sent, by what the collection holds of it now."""
    prepared, stored = one.prepared, looked.documents.get(outcome.document_id)
    if outcome.status is DocumentStatus.FAILED:
        return failed(prepared.item, outcome.document_id, outcome.reason, "not_encoded")
    if outcome.status is DocumentStatus.UNCHANGED and stored is not None:
        return unchanged(prepared, stored.fingerprint, one.warnings)
    if outcome.status is DocumentStatus.WRITTEN and stored is not None and _is_what_was_written(stored, outcome):
        record = _record_of(one, outcome, DocumentState.VERIFIED)
        return Settled(prepared.item, record, prepared.digest, outcome.chunk_tokens, one.document)
    if stored is None:
        return skipped(prepared, "was deleted by somebody while it was being indexed", "superseded")
    reason = "was written by somebody else while it was being indexed"
    return replace(skipped(prepared, reason, "superseded"), again=reason)
