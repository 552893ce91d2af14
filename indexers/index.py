"""The Index protocol: a collection as the request path and the indexer see it.

One suite of contract tests runs against every implementation (embedded Qdrant Edge, Qdrant over gRPC, exact NumPy).
It is async because one of them is across a network; the embedded ones never suspend in `search` and `fetch`, nor in
`late_scores` for as many passages as a request reranks, so these together see one state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from encoders.term_statistics import TermStatistics
from indexers.filters import Filter
from indexers.migrating.migration import Migration
from indexers.types import (
    Candidates,
    CollectionDefinition,
    CollectionKey,
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


class Index(Protocol):
    """One collection of one tenant."""

    @property
    def definition(self) -> CollectionDefinition:
        """What the collection promises."""
        ...

    @property
    def epoch(self) -> Epoch:
        """The state that a search reads now."""
        ...

    async def current_epoch(self) -> Epoch:
        """Returns the newest acknowledged state, whichever process wrote it; an embedded index knows without asking.

        Raises:
            IndexUnavailable: the store cannot be reached or is broken.
            CollectionNotFound: another process deleted the collection meanwhile.
            CollectionMoved: another process has moved the collection to another model; open it again.
        """
        ...

    @property
    def statistics(self) -> TermStatistics:
        """Document frequencies and average length of this collection, frozen with the generation."""
        ...

    async def search(self, query: SearchQuery, filter: Filter | None) -> Candidates:
        """Finds the best `query.limit` chunks of each branch that pass the filter, and completes their scores.

        The filter must have been coerced by the schema (`indexers.schema.coerce_filter`).

        Raises:
            InvalidVector: a query vector has another dimension or a non-finite value.
            IndexUnavailable: the store cannot be reached or is broken.
        """
        ...

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Passage]:
        """Returns the passages in the order asked for; ids that are gone are left out."""
        ...

    async def late_scores(self, query: NDArray[np.float32], passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Returns the late-interaction score of each fetched passage, float32 [n], from its stored token codes.

        `query` is `EncodedQuery.tokens`, [tokens, codec.dim]; without rows it scores 0 everywhere. NaN for a passage
        that has no codes here: the collection stores none, none of its tokens says anything, or it is gone.

        Raises:
            InvalidVector: the query has another dimension or a non-finite value.
            IndexUnavailable: the store cannot be reached or is broken.
        """
        ...

    async def upsert(self, documents: Sequence[EncodedDocument], since: int | None = None) -> WriteResult:
        """Replaces the documents, each atomically; when it returns, they are durable and the next search finds them.

        With `since`, a document that was written or deleted after that write sequence is left alone, in the same step
        as it is decided: who read his source before that would put an older state in the place of a newer one.

        Raises:
            InvalidVector: names the documents; nothing of the call was written.
        """
        ...

    async def delete(self, document_ids: Sequence[str], since: int | None = None) -> int:
        """Deletes by id and returns how many were there; when it returns, no search finds them.

        Each id leaves a tombstone, also one that is not there: a conditional upsert that began before does not bring
        it back (case JOB-04). With `since`, documents that were written after that write sequence stay.
        """
        ...

    async def delete_where(self, filter: Filter) -> int:
        """Deletes all documents whose metadata passes the filter.

        Raises:
            FilterEmpty: the filter has no conditions.
        """
        ...

    async def look_up(self, document_ids: Sequence[str]) -> dict[str, StoredDocument]:
        """Returns what is stored under each id that is there."""
        ...

    async def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        """Returns (id, source URI) of the owner's documents with greater ids, by id."""
        ...

    async def chunk_ids(self, document_id: str) -> list[str]:
        """Returns the ids of the document's chunks in order; none when it is not there."""
        ...

    async def get_document(self, document_id: str) -> Document | None:
        """Returns the document with its canonical text; None when it is not there."""
        ...

    async def list_documents(self, page_size: int, page_token: str) -> DocumentPage:
        """Lists documents ordered by id.

        Raises:
            InvalidPageToken: the token was not made by this method.
        """
        ...

    async def count(self, filter: Filter | None) -> Counts:
        """Counts the documents whose metadata passes, and their chunks."""
        ...

    async def build(self) -> Epoch:
        """Folds all writes so far into a new generation and serves from it; searches go on meanwhile."""
        ...

    async def build_if_stale(self) -> None:
        """Builds when much has changed since the generation, as at the end of a job; little is searched as it is."""
        ...

    async def close(self) -> None:
        """Releases files, connections and background work; a second call does nothing."""
        ...


class Catalog(Protocol):
    """All collections; every method takes the tenant, inside the key or by itself."""

    async def create(
        self, key: CollectionKey, fields: dict[str, FieldType], description: str, *, token_vectors: bool = True
    ) -> Index:
        """Makes an empty collection; with `token_vectors` it stores token codes when the model has a codec.

        Raises: CollectionExists, InvalidName, TooManyCollections.
        """
        ...

    async def open(self, key: CollectionKey) -> Index:
        """Returns the collection, opening it at first use.

        Raises: CollectionNotFound (the same for another tenant's), ModelMismatch.
        """
        ...

    async def list(self, tenant: str) -> list[Index]:
        """Returns the tenant's collections, by name."""
        ...

    async def update(self, key: CollectionKey, fields: dict[str, FieldType], description: str | None) -> Index:
        """Adds fields and changes the description; a declared field never changes its type.

        Raises: CollectionNotFound, SchemaConflict.
        """
        ...

    def migration(self, key: CollectionKey) -> Migration:
        """Returns what moves a collection to another model. Raises: CollectionNotFound, at the latest when used."""
        ...

    async def delete(self, key: CollectionKey) -> None:
        """Raises: CollectionNotFound."""
        ...

    async def close(self) -> None:
        """Releases files, connections and background work; a second call does nothing."""
        ...
