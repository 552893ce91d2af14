"""A collection on a Qdrant server. The server is the record: texts live in the payload.

Any number of processes write and search a collection. Writers take turns; every search also reads the collection's own
point, so it notices their epochs. Writing a document brings its new chunks before the old ones go, and a search keeps
only the newest version of a document, so none is ever missing or mixed.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from qdrant_client import models

from encoders.term_statistics import TermStatistics
from indexers.checks import MAX_PAGE_SIZE, check_documents, check_query, check_token_query
from indexers.errors import CollectionMoved
from indexers.filters import Filter
from indexers.late import no_scores
from indexers.page_token import read_page_token, write_page_token
from indexers.qdrant.building import QdrantBuilding
from indexers.qdrant.conditions import of_tenant, within
from indexers.qdrant.documents import chunk_ids, document_ids, owned
from indexers.qdrant.export import QdrantExport
from indexers.qdrant.migration_plan import read_plan, same_model
from indexers.qdrant.options import QdrantOptions
from indexers.qdrant.points import PASSAGE, STORED, SUMMARY, document_of, passage_of, point_id, stored_of, summary_of
from indexers.qdrant.searching import candidates_of, search_requests, token_request, token_scores
from indexers.qdrant.store import QdrantStore
from indexers.qdrant.view import CollectionView
from indexers.qdrant.writing import QdrantWriting
from indexers.schema import coerce_delete_filter, coerce_document, coerce_filter
from indexers.types import (
    Candidates,
    CollectionDefinition,
    Counts,
    Document,
    DocumentPage,
    EncodedDocument,
    Epoch,
    FieldType,
    Passage,
    SearchQuery,
    StoredDocument,
    WriteResult,
)


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk over an owner's documents."""

    owner: str
    after: str  # the last id that was given
    found: list[tuple[str, str]]
    position: int  # of what comes next


class QdrantIndex:
    """One collection of one tenant on a server."""

    def __init__(self, store: QdrantStore, view: CollectionView, options: QdrantOptions) -> None:
        self._store = store
        self._view = view
        self._options = options
        self._writing = QdrantWriting(store, view)
        self._building = QdrantBuilding(store, view, self._writing, options)
        self._names = view.names
        self._tenant = view.names.key.tenant
        self._walk: _Walk | None = None

    @property
    def definition(self) -> CollectionDefinition:
        """What the collection promises."""
        return self._view.state.definition

    @property
    def moved(self) -> bool:
        """Whether the collection has moved to another model, so that it must be opened again."""
        return self._view.moved

    @property
    def epoch(self) -> Epoch:
        """The newest state that this process has written or seen."""
        return Epoch(self._view.state.generation, self._view.state.write_sequence)

    async def current_epoch(self) -> Epoch:
        """Reads the collection's own point, which every write raises before it is acknowledged.

        Raises:
            CollectionMoved: it has moved to another model; requests that have begun may go on with what served before.
        """
        await self._look()
        if self.moved:
            raise CollectionMoved(self._names.key.collection)
        return self.epoch

    @property
    def statistics(self) -> TermStatistics:
        """The frequencies that the stored weights were made with."""
        return self._view.statistics

    async def search(self, query: SearchQuery, filter: Filter | None) -> Candidates:
        """Searches both branches in one round trip, and looks for a newer epoch beside it."""
        definition = self.definition
        check_query(query, definition.dim)
        requests = search_requests(query, within(self._tenant, filter, definition.fields), self._options)
        names, searching = self._names, self._store.search(self._names.chunks, requests)
        found, looked = await asyncio.gather(searching, self._look(), return_exceptions=True)
        if isinstance(looked, BaseException):
            raise looked
        if names is not self._names:  # the collection has just moved to another model
            found = await self._store.search(self._names.chunks, requests)
        if isinstance(found, BaseException):
            raise found
        return candidates_of(query, found)

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Passage]:
        """Returns the passages in the order asked for; what is gone, or another tenant's, is left out."""
        if not chunk_ids:
            return []
        found = await self._store.retrieve(self._names.chunks, chunk_ids, ["tenant", *PASSAGE])
        records = {str(one.id): one for one in found if (one.payload or {})["tenant"] == self._tenant}
        return [passage_of(records[one]) for one in chunk_ids if one in records]

    async def late_scores(self, query: NDArray[np.float32], passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Scores the passages by their stored token vectors, in one call restricted to their ids."""
        codec = self._view.codec
        if not len(query) or not passages:
            return np.zeros(len(passages), dtype=np.float32)
        if codec is None:
            return no_scores(len(passages))
        check_token_query(query, codec.dim)
        ids = [passage.chunk_id for passage in passages]
        theirs = of_tenant(self._tenant, models.HasIdCondition(has_id=list(ids)))
        [found] = await self._store.search(self._names.chunks, [token_request(query, theirs, len(ids))])
        return token_scores(ids, found)

    async def upsert(self, documents: Sequence[EncodedDocument], since: int | None = None) -> WriteResult:
        """Replaces documents; when it returns, every search finds them."""
        definition = self.definition
        check_documents(documents, definition.dim, definition.code_bytes)
        coerced = [coerce_document(one, definition.fields) for one in documents]
        superseded: frozenset[str] = frozenset()
        if coerced:
            superseded = await self._writing.replace(coerced, since)
            self._building.start_when_needed()
        return WriteResult(self.epoch, superseded)

    async def delete(self, document_ids: Sequence[str], since: int | None = None) -> int:
        """Deletes by id and returns how many were there."""
        return await self._writing.delete(list(dict.fromkeys(document_ids)), since)

    async def delete_where(self, filter: Filter) -> int:
        """Deletes the documents that pass the filter."""
        fields = self.definition.fields
        passing = within(self._tenant, coerce_delete_filter(filter, fields), fields)
        return await self._writing.delete(await document_ids(self._store, self._names, passing), None)

    async def look_up(self, document_ids: Sequence[str]) -> dict[str, StoredDocument]:
        """Returns what is stored under each id that is there, when no write is half done: who compares relies on it."""
        if not document_ids:
            return {}
        await self._writing.settle()
        ids = [point_id(one) for one in document_ids]
        found = await self._store.retrieve(self._names.documents, ids, STORED, strictly=True)
        return {one.payload["document_id"]: stored_of(one) for one in found if one.payload}

    async def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        """Returns (id, source URI) of the owner's documents with greater ids, by id.

        A server orders by its own ids only. So all are read at the first page, and a walk goes on in what was read.
        """
        if not owner:
            return []
        walk = self._walk
        if walk is None or (walk.owner, walk.after) != (owner, after):
            found = await owned(self._store, self._names, owner)
            walk = _Walk(owner, after, found, bisect_right(found, after, key=itemgetter(0)))
        page = walk.found[walk.position : walk.position + limit]
        position = walk.position + len(page)
        self._walk = _Walk(owner, page[-1][0], walk.found, position) if position < len(walk.found) else None
        return page

    async def chunk_ids(self, document_id: str) -> list[str]:
        """Returns the ids of the document's chunks in order."""
        return await chunk_ids(self._store, self._names, document_id)

    async def get_document(self, document_id: str) -> Document | None:
        """Returns a document with its canonical text, None when there is none."""
        found = await self._store.retrieve(self._names.documents, [point_id(document_id)], None)
        return document_of(found[0]) if found else None

    async def list_documents(self, page_size: int, page_token: str) -> DocumentPage:
        """Lists documents by id. A server orders by its own ids only, so a page reads the ids of all documents."""
        limit = min(max(page_size, 1), MAX_PAGE_SIZE)
        after = read_page_token(page_token)
        later = [one for one in await document_ids(self._store, self._names, of_tenant(self._tenant)) if one > after]
        names = heapq.nsmallest(limit + 1, later)
        ids = [point_id(one) for one in names[:limit]]
        found = await self._store.retrieve(self._names.documents, ids, SUMMARY) if ids else []
        documents = sorted((summary_of(one) for one in found), key=lambda one: one.document_id)
        return DocumentPage(tuple(documents), write_page_token(names[limit - 1]) if len(names) > limit else "")

    async def count(self, filter: Filter | None) -> Counts:
        """Counts documents and chunks that pass."""
        fields = self.definition.fields
        passing = within(self._tenant, None if filter is None else coerce_filter(filter, fields), fields)
        documents, chunks = await asyncio.gather(
            self._store.count(self._names.documents, passing), self._store.count(self._names.chunks, passing)
        )
        return Counts(documents, chunks)

    def export(self) -> QdrantExport:
        """Returns what reads the documents back as they were written."""
        return QdrantExport(self._store, self._names, self._view.codec)

    async def redefine(self, fields: dict[str, FieldType], description: str) -> None:
        """Changes the schema and the description; new fields are served once a new generation has them.

        Raises:
            TypeMismatch: a stored value cannot become the new type; nothing was changed.
        """
        await self._building.redefine(fields, description)

    async def build(self) -> Epoch:
        """Copies the collection into a new generation, weighed by what it holds now."""
        await self._building.build()
        return self.epoch

    async def build_if_stale(self) -> None:
        """Builds when the collection has doubled, or halved, since its terms were counted."""
        await self._building.build_if_stale()

    async def _look(self) -> None:
        """Looks for a newer state. When another model's serves by now, this index goes on with what served before.

        So a request that has begun with one model ends with it.

        Raises:
            CollectionMoved: what served before is forgotten, or was another model's too.
        """
        if self._names.pinned[0]:
            return
        try:
            await self._view.refresh()
        except CollectionMoved:
            plan = await read_plan(self._store, self._names)
            before = plan.away_from or plan.previous
            if before is None or not same_model(before.described(), self._view.state.definition):
                raise
            self._names = replace(self._names, pinned=(before.chunks, before.documents))

    async def close(self) -> None:
        """Stops builds and lets started writes finish; the connection belongs to the catalog."""
        await self._building.close()
        await self._writing.close()
        self._view.close()
