"""Serves `IndexService`: collections and the documents in them. Writing is bulk work; questions go ahead of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import grpc.aio

from encoders.types import WorkClass
from headrace.v1 import index_pb2
from indexers.errors import CollectionMoved, InvalidInput
from indexers.index import Catalog, Index
from indexers.page_token import read_page_token, write_page_token
from indexers.reports import UpsertReport
from indexers.types import CollectionKey, Document
from retrieval.errors import DocumentNotFound, InvalidRequest
from retrieval.jobs.service import JobDesk
from retrieval.migrating.desk import MigrationDesk
from retrieval.server.calls import current_call
from retrieval.server.convert.chunking import chunking_from_pb
from retrieval.server.convert.collections import checked_description, collection_to_pb, fields_from_pb
from retrieval.server.convert.documents import (
    UpsertTally,
    document_from_pb,
    document_to_pb,
    outcome_to_pb,
    summary_to_pb,
)
from retrieval.server.convert.filters import filter_from_pb
from retrieval.server.convert.ledgers import epoch_to_pb
from retrieval.server.convert.texts import checked_key
from retrieval.server.engines import IndexerOf
from retrieval.server.services.importing import Import
from retrieval.server.services.jobs import JobMethods
from retrieval.server.services.looking_up import look_up
from retrieval.server.services.migrations import MigrationMethods

MAX_DOCUMENTS = 256
MAX_IDS = 10_000
MAX_PAGE = 1_000
DEFAULT_PAGE = 100

T = TypeVar("T")
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class IndexService(JobMethods, MigrationMethods):
    """Converts, calls, converts. The tenant of every key is the caller's."""

    def __init__(
        self,
        catalog: Catalog,
        indexer_of: IndexerOf,
        forget: Callable[[CollectionKey], Awaitable[object]],
        jobs: JobDesk,
        migrations: MigrationDesk,
    ) -> None:
        """`forget` erases what the caches hold of a collection."""
        super().__init__(jobs)
        self._catalog = catalog
        self._indexer_of = indexer_of
        self._forget = forget
        self._migrations = migrations

    async def CreateCollection(  # noqa: N802 - the wire's name
        self, request: index_pb2.CreateCollectionRequest, context: Context
    ) -> index_pb2.CreateCollectionResponse:
        """Creates a collection."""
        key = checked_key(current_call().identity.tenant, request.name, "name")
        fields = fields_from_pb(request.fields)
        description = checked_description(request.description)
        token_vectors = request.token_vectors if request.HasField("token_vectors") else True
        index = await self._catalog.create(key, fields, description, token_vectors=token_vectors)
        return index_pb2.CreateCollectionResponse(collection=await _described(index))

    async def GetCollection(  # noqa: N802
        self, request: index_pb2.GetCollectionRequest, context: Context
    ) -> index_pb2.GetCollectionResponse:
        """Returns a collection."""
        index = await self._open(request.name, "name")
        return index_pb2.GetCollectionResponse(collection=await _described(index))

    async def ListCollections(  # noqa: N802
        self, request: index_pb2.ListCollectionsRequest, context: Context
    ) -> index_pb2.ListCollectionsResponse:
        """Lists the caller's collections, by name."""
        size, after = _page_size(request.page_size), read_page_token(request.page_token)
        indexes = await self._catalog.list(current_call().identity.tenant)
        rest = sorted((index for index in indexes if _name(index) > after), key=_name)
        page = rest[:size]
        token = write_page_token(_name(page[-1])) if len(rest) > size else ""
        collections = [await _described(index) for index in page]
        return index_pb2.ListCollectionsResponse(collections=collections, next_page_token=token)

    async def UpdateCollection(  # noqa: N802
        self, request: index_pb2.UpdateCollectionRequest, context: Context
    ) -> index_pb2.UpdateCollectionResponse:
        """Changes what the mask names."""
        key = checked_key(current_call().identity.tenant, request.name, "name")
        paths = set(request.update_mask.paths)
        if not paths or paths - {"description", "fields"}:
            bound = "description, fields; at least one"
            raise InvalidRequest("update_mask", bound, f"update_mask must name {bound}")
        fields = fields_from_pb(request.fields) if "fields" in paths else {}
        description = checked_description(request.description) if "description" in paths else None
        index = await self._catalog.update(key, fields, description)
        return index_pb2.UpdateCollectionResponse(collection=await _described(index))

    async def DeleteCollection(  # noqa: N802
        self, request: index_pb2.DeleteCollectionRequest, context: Context
    ) -> index_pb2.DeleteCollectionResponse:
        """Deletes a collection with all its documents, and what was cached of them."""
        key = checked_key(current_call().identity.tenant, request.name, "name")
        await self._migrations.abandon(key)
        await self._catalog.delete(key)
        await self._forget(key)
        return index_pb2.DeleteCollectionResponse()

    async def UpsertDocuments(  # noqa: N802
        self, request: index_pb2.UpsertDocumentsRequest, context: Context
    ) -> index_pb2.UpsertDocumentsResponse:
        """Adds or replaces documents; if one is refused, none is stored."""
        if not 1 <= len(request.documents) <= MAX_DOCUMENTS:
            bound = f"1 to {MAX_DOCUMENTS} documents"
            raise InvalidRequest("documents", bound, f"{len(request.documents)} documents were sent; send {bound}")
        documents = await asyncio.to_thread(_documents, request)
        since = request.unchanged_since if request.HasField("unchanged_since") else None
        chunking = chunking_from_pb(request.chunking)

        async def upsert(index: Index) -> UpsertReport:
            return await self._indexer_of(index, chunking).upsert(documents, WorkClass.BULK, since)

        try:
            report = await self._as_it_is(request.collection, upsert)
        except InvalidInput as error:
            raise type(error)(_wire_name(error.field), error.bound, str(error)) from None
        tally = UpsertTally()
        tally.add(report.outcomes)
        outcomes = [outcome_to_pb(outcome) for outcome in report.outcomes]
        return index_pb2.UpsertDocumentsResponse(result=tally.result(report.epoch), outcomes=outcomes)

    async def ImportDocuments(  # noqa: N802
        self, request_iterator: AsyncIterator[index_pb2.ImportDocumentsRequest], context: Context
    ) -> index_pb2.ImportDocumentsResponse:
        """Adds or replaces any number of documents; one that is refused is named, and the rest go on."""
        first = await anext(request_iterator, None)
        if first is None:
            raise InvalidRequest(
                "collection", "the first message", "the import has no message; name a collection in one"
            )
        await self._open(first.collection)
        name = first.collection
        running = Import(name, partial(self._open, name), partial(self._upsert, name))
        return index_pb2.ImportDocumentsResponse(result=await running.run(_chained(first, request_iterator)))

    async def DeleteDocuments(  # noqa: N802
        self, request: index_pb2.DeleteDocumentsRequest, context: Context
    ) -> index_pb2.DeleteDocumentsResponse:
        """Deletes by ids or by filter; when it returns, no search finds them."""

        async def delete(index: Index) -> index_pb2.DeleteDocumentsResponse:
            deleted = await _delete(index, request)
            kept = await index.look_up(request.ids.ids) if request.HasField("unchanged_since") else {}
            return index_pb2.DeleteDocumentsResponse(deleted=deleted, epoch=epoch_to_pb(index.epoch), kept=sorted(kept))

        return await self._as_it_is(request.collection, delete)

    async def LookUpDocuments(  # noqa: N802
        self, request: index_pb2.LookUpDocumentsRequest, context: Context
    ) -> index_pb2.LookUpDocumentsResponse:
        """Says what is stored, without texts."""
        chunking = chunking_from_pb(request.chunking)

        async def look(index: Index) -> index_pb2.LookUpDocumentsResponse:
            return await look_up(index, self._indexer_of(index, chunking), request)

        return await self._as_it_is(request.collection, look)

    async def GetDocument(  # noqa: N802
        self, request: index_pb2.GetDocumentRequest, context: Context
    ) -> index_pb2.GetDocumentResponse:
        """Returns a document with its canonical text."""
        index = await self._open(request.collection)
        document = await index.get_document(request.id)
        if document is None:
            raise DocumentNotFound(request.id)
        return index_pb2.GetDocumentResponse(document=document_to_pb(document))

    async def ListDocuments(  # noqa: N802
        self, request: index_pb2.ListDocumentsRequest, context: Context
    ) -> index_pb2.ListDocumentsResponse:
        """Lists documents without their text, by id."""
        size = _page_size(request.page_size)
        index = await self._open(request.collection)
        page = await index.list_documents(size, request.page_token)
        documents = [summary_to_pb(summary) for summary in page.documents]
        return index_pb2.ListDocumentsResponse(documents=documents, next_page_token=page.next_page_token)

    async def CountDocuments(  # noqa: N802
        self, request: index_pb2.CountDocumentsRequest, context: Context
    ) -> index_pb2.CountDocumentsResponse:
        """Counts documents and chunks."""
        index = await self._open(request.collection)
        asked = filter_from_pb(request.filter) if request.HasField("filter") else None
        counts = await index.count(asked)
        return index_pb2.CountDocumentsResponse(documents=counts.documents, chunks=counts.chunks)

    async def BuildCollection(  # noqa: N802
        self, request: index_pb2.BuildCollectionRequest, context: Context
    ) -> index_pb2.BuildCollectionResponse:
        """Folds all writes so far into a new generation."""
        index = await self._open(request.collection)
        return index_pb2.BuildCollectionResponse(epoch=epoch_to_pb(await index.build()))

    async def _upsert(self, collection: str, documents: Sequence[Document]) -> UpsertReport:
        return await self._as_it_is(collection, lambda index: self._indexer_of(index).upsert(documents, WorkClass.BULK))

    async def _as_it_is(self, collection: str, act: Callable[[Index], Awaitable[T]]) -> T:
        """Acts on a collection; when it has moved to another model meanwhile, once more as it is then."""
        while True:
            try:
                return await act(await self._open(collection))
            except CollectionMoved:
                continue

    async def _open(self, collection: str, field: str = "collection") -> Index:
        return await self._catalog.open(checked_key(current_call().identity.tenant, collection, field))


def _name(index: Index) -> str:
    return index.definition.key.collection


async def _described(index: Index) -> index_pb2.Collection:
    return collection_to_pb(index, await index.count(None))


def _documents(request: index_pb2.UpsertDocumentsRequest) -> list[Document]:
    return [document_from_pb(message, f"documents[{at}]") for at, message in enumerate(request.documents)]


async def _delete(index: Index, request: index_pb2.DeleteDocumentsRequest) -> int:
    selection, conditional = request.WhichOneof("selection"), request.HasField("unchanged_since")
    if selection is None:
        raise InvalidRequest(
            "selection", "ids or filter", "nothing says which documents to delete; give ids or a filter"
        )
    if selection == "filter":
        if conditional:
            raise InvalidRequest("unchanged_since", "ids", "unchanged_since is for ids only; leave it out or send ids")
        return await index.delete_where(filter_from_pb(request.filter))
    ids = list(request.ids.ids)
    if not 1 <= len(ids) <= MAX_IDS:
        bound = f"1 to {MAX_IDS}"
        raise InvalidRequest("ids", bound, f"{len(ids)} ids were sent; send {bound}")
    return await index.delete(ids, request.unchanged_since if conditional else None)


def _page_size(asked: int) -> int:
    if asked > MAX_PAGE:
        raise InvalidRequest("page_size", f"1..{MAX_PAGE}", f"page_size is {asked}; it must be at most {MAX_PAGE}")
    return asked or DEFAULT_PAGE


def _wire_name(field: str) -> str:
    """Returns a field's path as the message has it, where a document's id is called `id`."""
    return field.replace("].document_id", "].id")


async def _chained(
    first: index_pb2.ImportDocumentsRequest, rest: AsyncIterator[index_pb2.ImportDocumentsRequest]
) -> AsyncIterator[index_pb2.ImportDocumentsRequest]:
    yield first
    async for message in rest:
        yield message
