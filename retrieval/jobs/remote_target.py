"""A collection behind a running server as a Target: the server chunks, encodes and writes, ahead of nobody's questions.

A server that goes away is looked for again by whoever knows where it is: after a restart it may listen elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import grpc
import grpc.aio

from headrace.v1 import index_pb2
from indexers.documents import document_fingerprint
from indexers.errors import CollectionNotFound, JobError, TargetUnavailable
from indexers.jobs.declaring import declared_fields
from indexers.jobs.spec import ChunkingSpec, JobSpec
from indexers.jobs.target import Looked
from indexers.reports import UpsertReport
from indexers.types import Document, Epoch, FieldType, StoredDocument
from retrieval.client import Client
from retrieval.server.convert.collections import fields_from_pb, fields_to_pb
from retrieval.server.convert.documents import document_to_pb, outcome_from_pb

T = TypeVar("T")

_TRANSIENT = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.CANCELLED,  # by a server that stops
        grpc.StatusCode.ABORTED,
    }
)


class Connection:
    """The way to a server that may come back at another address."""

    def __init__(self, address_of: Callable[[], str | None], api_key: str) -> None:
        """`address_of` says where the server is now; None when there is none."""
        self._address_of = address_of
        self._api_key = api_key
        self._client: Client | None = None
        self._address = ""

    async def call(self, call: Callable[[Client], Awaitable[T]]) -> T:
        """Makes one call.

        Raises:
            TargetUnavailable: the server cannot be reached, stops, or has no room now.
            AioRpcError: it refuses the call.
        """
        client = await self._connected()
        try:
            return await call(client)
        except grpc.aio.AioRpcError as error:
            if error.code() not in _TRANSIENT:
                raise
            raise TargetUnavailable(f"the server at {self._address}", error.details() or error.code().name) from error

    async def close(self) -> None:
        """Closes the connection."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _connected(self) -> Client:
        address = self._address_of()
        if address is None:
            raise TargetUnavailable("the server of the data folder", "it does not run")
        if self._client is None or address != self._address:
            await self.close()
            self._client, self._address = Client(address, self._api_key or None, timeout_s=60.0), address
        return self._client


class RemoteTarget:
    """One collection of the tenant whose key is presented."""

    def __init__(self, connection: Connection, collection: str, chunking: ChunkingSpec) -> None:
        self._connection = connection
        self._collection = collection
        self._chunking = index_pb2.ChunkingOptions(
            limit_tokens=chunking.limit_tokens or None,
            overlap_tokens=None if chunking.overlap_tokens < 0 else chunking.overlap_tokens,
        )
        self._fields: Mapping[str, FieldType] = {}
        self._shaping = ""

    async def open(self, spec: JobSpec) -> None:
        """Makes the collection when it is not there, declares the job's fields, and learns what shapes fingerprints.

        Raises:
            TargetUnavailable, JobError: the server cannot be reached, or refuses.
        """
        try:
            found = await self._connection.call(lambda client: client.get_collection(self._collection))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise _refused(error, self._collection) from error
            fields = fields_to_pb(declared_fields(spec, {}))
            create = partial(Client.create_collection, name=self._collection, description=spec.description)
            found = await self._call(lambda client: create(client, fields=fields))
        fields = fields_to_pb(declared_fields(spec, fields_from_pb(found.fields)))
        if fields:
            found = await self._call(lambda client: client.update_collection(self._collection, fields=fields))
        self._fields = fields_from_pb(found.fields)
        await self.look([])

    @property
    def fields(self) -> Mapping[str, FieldType]:
        """The declared metadata fields."""
        return self._fields

    @property
    def shaping(self) -> str:
        """What shapes a stored fingerprint besides the document, as the server said last."""
        return self._shaping

    def fingerprint(self, document: Document) -> str:
        """Returns the fingerprint that the document would be stored with, as the server said last."""
        return document_fingerprint(document, self._shaping)

    async def look(self, document_ids: Sequence[str]) -> Looked:
        """Returns what is stored, and the write sequence that was read before."""
        reply = await self._look_up(ids=document_ids)
        self._shaping = reply.shaping
        stored = {
            one.id: StoredDocument(one.fingerprint, one.owner, one.chunk_count, one.write_sequence)
            for one in reply.documents
        }
        return Looked(reply.epoch.write_sequence, stored)

    async def write(self, documents: Sequence[Document], since: int) -> UpsertReport:
        """Sends the documents; the server leaves alone what somebody has changed since."""
        request = index_pb2.UpsertDocumentsRequest(
            collection=self._collection,
            documents=[document_to_pb(document) for document in documents],
            unchanged_since=since,
            chunking=self._chunking,
        )
        reply = await self._call(lambda client: client.write(request))
        epoch = Epoch(reply.result.epoch.generation, reply.result.epoch.write_sequence)
        return UpsertReport(tuple(map(outcome_from_pb, reply.outcomes)), epoch)

    async def delete(self, document_ids: Sequence[str], since: int) -> int:
        """Deletes what nobody has written since; returns how many were there."""
        call = partial(Client.delete_documents, collection=self._collection, ids=document_ids, unchanged_since=since)
        return (await self._call(call)).deleted

    async def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        """Returns (id, source URI) of the owner's documents with greater ids, by id."""
        reply = await self._look_up(owner=owner, after=after, limit=limit)
        return [(one.id, one.source_uri) for one in reply.owned]

    async def chunk_ids(self, document_ids: Sequence[str]) -> list[str]:
        """Returns the ids of the documents' chunks."""
        return list((await self._look_up(chunks_of=document_ids)).chunks)

    async def present(self, chunk_ids: Sequence[str]) -> list[str]:
        """Returns which of the chunks can still be fetched."""
        found: list[str] = []
        for start in range(0, len(chunk_ids), 10_000):
            found += (await self._look_up(chunk_ids=chunk_ids[start : start + 10_000])).present_chunk_ids
        return found

    async def finish(self) -> None:
        """Does nothing: the server builds generations as it sees fit."""

    async def _look_up(
        self,
        *,
        ids: Sequence[str] = (),
        chunks_of: Sequence[str] = (),
        chunk_ids: Sequence[str] = (),
        owner: str = "",
        after: str = "",
        limit: int = 0,
    ) -> index_pb2.LookUpDocumentsResponse:
        request = index_pb2.LookUpDocumentsRequest(
            collection=self._collection,
            ids=ids,
            chunks_of=chunks_of,
            chunk_ids=chunk_ids,
            owner=owner,
            after=after,
            limit=limit,
            chunking=self._chunking,
        )
        return await self._call(lambda client: client.look_up(request))

    async def _call(self, call: Callable[[Client], Awaitable[T]]) -> T:
        try:
            return await self._connection.call(call)
        except grpc.aio.AioRpcError as error:
            raise _refused(error, self._collection) from error


def _refused(error: grpc.aio.AioRpcError, collection: str) -> CollectionNotFound | JobError:
    if error.code() is grpc.StatusCode.NOT_FOUND:
        return CollectionNotFound(collection)
    return JobError(f"the server refuses: {error.details() or error.code().name}")
