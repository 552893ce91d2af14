"""Indexes through a running server: files are read here, documents are sent as the server takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from indexers.errors import InvalidInput
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SourceItem
from indexers.pruning import SeenSources, prune
from indexers.reports import IndexReport, Problem, Progress, Tally
from indexers.types import DocumentPage, DocumentSummary, Epoch
from retrieval.cli.collections import wire_fields
from retrieval.cli.exits import ImportBroken
from retrieval.cli.index_sources import same_sources
from retrieval.client import Client, error_info
from retrieval.errors import InvalidRequest
from retrieval.server.convert.documents import document_to_pb

if TYPE_CHECKING:
    from headrace.v1.index_pb2 import Document, UpsertResult
    from retrieval.cli.index_job import IndexJob


async def index_remote(client: Client, job: IndexJob, progress: Progress | None) -> IndexReport:
    """Does the job through the server, which builds generations as it sees fit.

    Raises:
        AioRpcError: the server refuses, or is not there at the start.
        ImportBroken: it goes away in the middle; what it acknowledged stays.
    """
    await _ensure(client, job.collection, job.fields)
    tally, seen = Tally(), SeenSources()
    served = _Served(client, job.collection)
    items = job.items if job.replace_sources else await same_sources(served, job.items, job.read)
    sending = _Sending(iter(items), tally, seen, progress)
    try:
        result = await client.import_documents(job.collection, sending.documents())
        await prune(served, job.roots, seen, tally)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNAVAILABLE and error_info(error) is None:
            raise ImportBroken from error
        raise
    return _merged(tally.report(Epoch(result.epoch.generation, result.epoch.write_sequence)), result)


class _Sending:
    """Turns what is read into documents to send, and counts the rest."""

    def __init__(self, items: Iterator[SourceItem], tally: Tally, seen: SeenSources, progress: Progress | None) -> None:
        self._items = items
        self._tally = tally
        self._seen = seen
        self._progress = progress
        self._sent = 0

    async def documents(self) -> AsyncIterator[Document]:
        """Yields documents as they are read, in a worker thread."""
        while (item := await asyncio.to_thread(next, self._items, None)) is not None:
            if not isinstance(item, ParsedDocument):
                self._count(item)
            elif self._seen.add(item.document.document_id):
                if (message := self._message(item)) is not None:
                    yield message
            else:
                self._tally.fail(item.document.document_id, "a document with the same id came before it; rename one")
            if self._progress is not None:
                self._progress.advanced(replace(self._tally.counts, written=self._sent))

    def _message(self, item: ParsedDocument) -> Document | None:
        """Returns the document as it is sent; None when it cannot be, which is counted: an error would end the call."""
        name = item.document.document_id
        try:
            message = document_to_pb(item.document)
        except UnicodeEncodeError:
            self._tally.fail(name, "holds characters that are no valid Unicode; change them or leave the document out")
            return None
        except (InvalidRequest, InvalidInput) as error:
            self._tally.fail(name, str(error))
            return None
        self._sent += 1
        for warning in item.warnings:
            self._tally.warn(name, warning)
        return message

    def _count(self, item: SourceItem) -> None:
        if isinstance(item, ParseFailure):
            self._tally.fail(item.path, item.reason)
            self._seen.keep(item.source_uri)
        elif not isinstance(item, ParsedDocument):
            self._tally.skip(item.path, item.reason)


class _Served:
    """The collection as pruning and the check of sources need it: listed by pages, deleted from by ids."""

    def __init__(self, client: Client, collection: str) -> None:
        self._client = client
        self._collection = collection

    async def list_documents(self, page_size: int, page_token: str) -> DocumentPage:
        """Returns one page; only what is looked at is filled in."""
        page = await self._client.list_documents(self._collection, page_size, page_token)
        summaries = (
            DocumentSummary(
                document_id=one.id,
                title=one.title,
                metadata={},
                fingerprint=one.fingerprint,
                chunk_count=one.chunk_count,
                text_length=one.text_length,
                source_uri=one.source_uri,
                indexed_at=one.index_time.ToDatetime(),
            )
            for one in page.documents
        )
        return DocumentPage(tuple(summaries), page.next_page_token)

    async def delete(self, document_ids: Sequence[str]) -> int:
        """Deletes by id and returns how many were there."""
        return (await self._client.delete_documents(self._collection, ids=document_ids)).deleted


async def _ensure(client: Client, collection: str, fields: Mapping[str, str]) -> None:
    """Creates the collection when it is not there, or declares the fields besides its own."""
    try:
        await client.get_collection(collection)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        await client.create_collection(collection, fields=wire_fields(fields))
    else:
        if fields:
            await client.update_collection(collection, fields=wire_fields(fields))


def _merged(report: IndexReport, result: UpsertResult) -> IndexReport:
    """Adds what the server says to what was seen here."""
    counts = replace(
        report.counts,
        written=result.indexed,
        unchanged=result.unchanged,
        failed=report.counts.failed + result.failed,
        chunks=result.chunks,
    )
    failures = tuple(Problem(one.document_id, one.reason) for one in result.failures)
    warnings = tuple(Problem(one.document_id, one.reason) for one in result.warnings)
    return replace(report, counts=counts, failures=report.failures + failures, warnings=report.warnings + warnings)
