"""The calls of the client: one method an rpc, messages of `headrace.v1` as they come, grpc's own errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from types import TracebackType
from typing import Self

import grpc.aio
from google.protobuf.field_mask_pb2 import FieldMask

from headrace.v1 import admin_pb2 as admin
from headrace.v1 import admin_pb2_grpc, encoding_pb2_grpc, index_pb2_grpc, retrieval_pb2_grpc
from headrace.v1 import common_pb2 as common
from headrace.v1 import encoding_pb2 as encoding
from headrace.v1 import index_pb2 as index
from headrace.v1 import retrieval_pb2 as retrieval
from retrieval.client.jobs import Jobs
from retrieval.client.messages import filter_message, import_messages, retrieve_request
from retrieval.client.migrations import Migrations

DEFAULT_TARGET = "127.0.0.1:50051"
CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 512 * 1024 * 1024),
    ("grpc.max_send_message_length", 512 * 1024 * 1024),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_WRITE_S = 900.0


class Client:
    """Talks to one server, as `async with Client("127.0.0.1:50051", api_key=KEY) as client: ...`.

    The target is `host:port`, or `unix:PATH` for a socket. `timeout_s` bounds each call that is given none of its own,
    except imports and builds, which take as long as they take; None means no bound.
    """

    def __init__(
        self, target: str = DEFAULT_TARGET, api_key: str | None = None, *, timeout_s: float | None = 60.0
    ) -> None:
        self._timeout_s = timeout_s
        self._metadata = grpc.aio.Metadata(*([("authorization", f"Bearer {api_key}")] if api_key else []))
        self._channel = grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS)
        self._retrieval = retrieval_pb2_grpc.RetrievalServiceStub(self._channel)
        self._encoding = encoding_pb2_grpc.EncodingServiceStub(self._channel)
        self._index = index_pb2_grpc.IndexServiceStub(self._channel)
        self._admin = admin_pb2_grpc.AdminServiceStub(self._channel)
        self.jobs = Jobs(self._index, self._metadata, timeout_s)
        self.migrations = Migrations(self._index, self._metadata, timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the channel; calls that run are cancelled."""
        await self._channel.close()

    async def retrieve(
        self,
        collection: str,
        query: str,
        *,
        top_k: int | None = None,
        filter: str | common.Filter | None = None,
        options: retrieval.RetrievalOptions | None = None,
        cache_control: retrieval.CacheControl | None = None,
        timeout_s: float | None = None,
    ) -> retrieval.RetrieveResponse:
        """Finds the passages that answer a question; `filter` is a message, or text like `year >= 2020`."""
        request = retrieve_request(
            collection, query, top_k=top_k, filter=filter, options=options, cache_control=cache_control
        )
        return await self._retrieval.Retrieve(request, metadata=self._metadata, timeout=timeout_s or self._timeout_s)

    async def generate(
        self, request: retrieval.GenerateRequest, *, timeout_s: float | None = None
    ) -> AsyncGenerator[retrieval.GenerateResponse, None]:
        """Answers a question: one `retrieved` event, `delta` events, one `completed` event.

        `retrieve_request` makes the part that says what to retrieve. Leaving the iteration cancels the call.
        """
        call = self._retrieval.Generate(request, metadata=self._metadata, timeout=timeout_s or self._timeout_s)
        try:
            async for event in call:
                if event.HasField("completed"):
                    await call.code()  # a caller who leaves now would else cancel a call that has succeeded
                yield event
        finally:
            call.cancel()

    async def explain_route(
        self, request: retrieval.GenerateRequest, *, timeout_s: float | None = None
    ) -> retrieval.ExplainRouteResponse:
        """Returns which backend would answer a question now, and why; it is retrieved for, and nothing is generated."""
        asked = retrieval.ExplainRouteRequest(request=request)
        return await self._retrieval.ExplainRoute(asked, metadata=self._metadata, timeout=timeout_s or self._timeout_s)

    async def report_answer(
        self, collection: str, key: str, verdict: retrieval.AnswerVerdict.ValueType, *, request_id: str = ""
    ) -> retrieval.ReportAnswerResponse:
        """Tells how good an answer was; `key` is that of its `AnswerReuse`. A bad one is served to nobody again.

        With the id of the request that it was served to, the cache learns from the verdict.
        """
        request = retrieval.ReportAnswerRequest(collection=collection, key=key, verdict=verdict, request_id=request_id)
        return await self._retrieval.ReportAnswer(request, metadata=self._metadata, timeout=self._timeout_s)

    async def embed(
        self,
        texts: Iterable[str],
        *,
        kind: encoding.TextKind.ValueType = encoding.TEXT_KIND_QUERY,
        truncate: bool = True,
        timeout_s: float | None = None,
    ) -> encoding.EmbedResponse:
        """Turns texts into vectors."""
        request = encoding.EmbedRequest(texts=texts, kind=kind, truncate=truncate)
        return await self._encoding.Embed(request, metadata=self._metadata, timeout=timeout_s or self._timeout_s)

    async def rerank(
        self, query: str, passages: Iterable[str], *, top_k: int | None = None, timeout_s: float | None = None
    ) -> encoding.RerankResponse:
        """Scores passages against a query with the cross-encoder."""
        request = encoding.RerankRequest(query=query, passages=passages, top_k=top_k)
        return await self._encoding.Rerank(request, metadata=self._metadata, timeout=timeout_s or self._timeout_s)

    async def count_tokens(
        self, texts: Iterable[str], tokenizer: encoding.TokenizerKind.ValueType = encoding.TOKENIZER_KIND_ENCODER
    ) -> encoding.CountTokensResponse:
        """Counts the tokens of each text."""
        request = encoding.CountTokensRequest(texts=texts, tokenizer=tokenizer)
        return await self._encoding.CountTokens(request, metadata=self._metadata, timeout=self._timeout_s)

    async def create_collection(
        self,
        name: str,
        *,
        fields: Mapping[str, common.FieldType.ValueType] | None = None,
        description: str = "",
        token_vectors: bool | None = None,
    ) -> index.Collection:
        """Creates a collection with its declared metadata fields; it stores token vectors unless that is False."""
        request = index.CreateCollectionRequest(
            name=name, description=description, fields=fields, token_vectors=token_vectors
        )
        reply = await self._index.CreateCollection(request, metadata=self._metadata, timeout=self._timeout_s)
        return reply.collection

    async def get_collection(self, name: str) -> index.Collection:
        """Returns a collection."""
        request = index.GetCollectionRequest(name=name)
        reply = await self._index.GetCollection(request, metadata=self._metadata, timeout=self._timeout_s)
        return reply.collection

    async def list_collections(self, page_size: int = 0, page_token: str = "") -> index.ListCollectionsResponse:
        """Returns one page of the caller's collections, by name."""
        request = index.ListCollectionsRequest(page_size=page_size, page_token=page_token)
        return await self._index.ListCollections(request, metadata=self._metadata, timeout=self._timeout_s)

    async def update_collection(
        self,
        name: str,
        *,
        fields: Mapping[str, common.FieldType.ValueType] | None = None,
        description: str | None = None,
    ) -> index.Collection:
        """Declares more fields, or changes the description; what is None stays."""
        given = {"description": description, "fields": fields}
        mask = FieldMask(paths=[path for path, value in given.items() if value is not None])
        request = index.UpdateCollectionRequest(
            name=name, description=description or "", fields=fields, update_mask=mask
        )
        reply = await self._index.UpdateCollection(request, metadata=self._metadata, timeout=self._timeout_s)
        return reply.collection

    async def delete_collection(self, name: str) -> None:
        """Deletes a collection with all its documents."""
        request = index.DeleteCollectionRequest(name=name)
        await self._index.DeleteCollection(request, metadata=self._metadata, timeout=self._timeout_s)

    async def build_collection(self, name: str) -> common.Epoch:
        """Folds all writes so far into a new generation."""
        reply = await self._index.BuildCollection(
            index.BuildCollectionRequest(collection=name), metadata=self._metadata
        )
        return reply.epoch

    async def upsert(self, collection: str, documents: Iterable[index.Document]) -> index.UpsertResult:
        """Adds or replaces up to 256 documents; if one is refused, none is stored."""
        request = index.UpsertDocumentsRequest(collection=collection, documents=documents)
        reply = await self._index.UpsertDocuments(request, metadata=self._metadata, timeout=self._timeout_s)
        return reply.result

    async def write(self, request: index.UpsertDocumentsRequest) -> index.UpsertDocumentsResponse:
        """Adds or replaces documents under the conditions of the request, and says what became of each.

        It may take long, since encoding waits for others' work.
        """
        return await self._index.UpsertDocuments(request, metadata=self._metadata, timeout=_WRITE_S)

    async def look_up(self, request: index.LookUpDocumentsRequest) -> index.LookUpDocumentsResponse:
        """Says what is stored under some ids, without texts."""
        return await self._index.LookUpDocuments(request, metadata=self._metadata, timeout=self._timeout_s)

    async def import_documents(
        self, collection: str, documents: Iterable[index.Document] | AsyncIterable[index.Document]
    ) -> index.UpsertResult:
        """Adds or replaces any number of documents; the server's pace holds back the iteration."""
        reply = await self._index.ImportDocuments(import_messages(collection, documents), metadata=self._metadata)
        return reply.result

    async def delete_documents(
        self,
        collection: str,
        *,
        ids: Iterable[str] | None = None,
        filter: str | common.Filter | None = None,
        unchanged_since: int | None = None,
    ) -> index.DeleteDocumentsResponse:
        """Deletes documents by ids or by filter; exactly one of the two must be given.

        With `unchanged_since`, ids of documents that were written after that write sequence are left alone.

        Raises:
            ValueError: neither or both are given.
        """
        if (ids is None) == (filter is None):
            raise ValueError("give either ids or a filter")
        request = index.DeleteDocumentsRequest(
            collection=collection,
            ids=None if ids is None else index.DocumentIds(ids=ids),
            filter=filter_message(filter),
            unchanged_since=unchanged_since,
        )
        return await self._index.DeleteDocuments(request, metadata=self._metadata, timeout=self._timeout_s)

    async def get_document(self, collection: str, document_id: str) -> index.Document:
        """Returns a document with its canonical text."""
        request = index.GetDocumentRequest(collection=collection, id=document_id)
        reply = await self._index.GetDocument(request, metadata=self._metadata, timeout=self._timeout_s)
        return reply.document

    async def list_documents(
        self, collection: str, page_size: int = 0, page_token: str = ""
    ) -> index.ListDocumentsResponse:
        """Returns one page of documents without their text, by id."""
        request = index.ListDocumentsRequest(collection=collection, page_size=page_size, page_token=page_token)
        return await self._index.ListDocuments(request, metadata=self._metadata, timeout=self._timeout_s)

    async def count(self, collection: str, filter: str | common.Filter | None = None) -> index.CountDocumentsResponse:
        """Counts documents and chunks."""
        request = index.CountDocumentsRequest(collection=collection, filter=filter_message(filter))
        return await self._index.CountDocuments(request, metadata=self._metadata, timeout=self._timeout_s)

    async def info(self) -> admin.GetInfoResponse:
        """Returns what the server runs."""
        return await self._admin.GetInfo(admin.GetInfoRequest(), metadata=self._metadata, timeout=self._timeout_s)

    async def reload_config(self) -> admin.ReloadConfigResponse:
        """Makes the server read its configuration again; whole or not at all."""
        request = admin.ReloadConfigRequest()
        return await self._admin.ReloadConfig(request, metadata=self._metadata, timeout=self._timeout_s)

    async def cache_stats(self) -> admin.GetCacheStatsResponse:
        """Returns how the caches fare."""
        request = admin.GetCacheStatsRequest()
        return await self._admin.GetCacheStats(request, metadata=self._metadata, timeout=self._timeout_s)

    async def invalidate_cache(
        self, collection: str = "", *, document_id: str = "", older_than_s: float | None = None
    ) -> admin.InvalidateCacheResponse:
        """Forgets what is cached for the caller's tenant and agrees with all that is given; without any, all of it."""
        request = admin.InvalidateCacheRequest(
            collection=collection, document_id=document_id, older_than_s=older_than_s
        )
        return await self._admin.InvalidateCache(request, metadata=self._metadata, timeout=self._timeout_s)

    async def explain_cache_key(self, collection: str, key: str) -> admin.ExplainCacheKeyResponse:
        """Returns a cached answer, with whether the collection still holds what it was made from."""
        request = admin.ExplainCacheKeyRequest(collection=collection, key=key)
        return await self._admin.ExplainCacheKey(request, metadata=self._metadata, timeout=self._timeout_s)
