"""What bad input gets: the right status, an ErrorInfo with field and bound, nothing stored, the next call fine."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc
import grpc.aio
import pytest

from headrace.v1 import common_pb2, index_pb2, retrieval_pb2
from retrieval.client import Client, document, error_info, retrieve_request
from tests.integration.conftest import ServerProcess

FIELDS = {"year": common_pb2.FIELD_TYPE_INTEGER, "lang": common_pb2.FIELD_TYPE_KEYWORD}
Call: TypeAlias = Callable[[Client, str], Awaitable[Any]]
Options = retrieval_pb2.RetrievalOptions


@pytest.fixture
async def alice(server: ServerProcess) -> AsyncIterator[Client]:
    """A client of tenant alice."""
    async with server.client("alice") as client:
        yield client


@pytest.fixture
async def docs(alice: Client) -> str:
    """A collection with one document."""
    name = f"bad-{uuid.uuid4().hex[:8]}"
    await alice.create_collection(name, fields=FIELDS)
    await alice.upsert(name, [document("kept", "The one document that stays.", metadata={"year": 2020})])
    return name


def _match(name: str, value: common_pb2.MetadataValue) -> common_pb2.Filter:
    match = common_pb2.MatchAny(field=name, values=[value])
    return common_pb2.Filter(must=[common_pb2.Condition(match_any=match)])


def _nested(depth: int) -> common_pb2.Filter:
    inner = common_pb2.Filter(must=[common_pb2.Condition(exists=common_pb2.Exists(field="year"))])
    for _ in range(depth):
        inner = common_pb2.Filter(must=[common_pb2.Condition(filter=inner)])
    return inner


def _retrieve(query: str = "q", **more: Any) -> Call:
    return lambda client, docs: client.retrieve(docs, query, **more)


def _upsert(*documents: index_pb2.Document) -> Call:
    return lambda client, docs: client.upsert(docs, [document("new", "A good one."), *documents])


TEXT = common_pb2.MetadataValue(string_value="many")
CASES: dict[str, tuple[Call, str, str]] = {
    "empty query": (_retrieve(""), "query", "at least one visible character"),
    "blank query": (_retrieve(" \n\t\u3000"), "query", "at least one visible character"),
    "query of 1 MB": (_retrieve("x" * 1_000_000), "query", "at most 32768 bytes"),
    "NUL in the query": (_retrieve("a\x00b"), "query", "no NUL characters"),
    "top_k 0": (_retrieve(top_k=0), "top_k", "1..200"),
    "top_k 10^9": (_retrieve(top_k=10**9), "top_k", "1..200"),
    "candidates below top_k": (_retrieve(top_k=10, options=Options(candidates=5)), "options.candidates", "10..500"),
    "weight above 1": (_retrieve(options=Options(dense_weight=1.5)), "options.dense_weight", "0.0..1.0"),
    "weight NaN": (_retrieve(options=Options(dense_weight=float("nan"))), "options.dense_weight", "0.0..1.0"),
    "context budget": (_retrieve(options=Options(context_tokens=10**6)), "options.context_tokens", "16..32000"),
    "bad collection name": (lambda client, docs: client.retrieve("No/Such", "q"), "collection", "a-z 0-9"),
    "unknown filter field": (_retrieve(filter=_match("colour", TEXT)), "filter.colour", "declared"),
    "filter of a wrong type": (_retrieve(filter=_match("year", TEXT)), "filter.year", "whole number"),
    "filter without conditions": (_retrieve(filter=common_pb2.Filter()), "filter", "at least one condition"),
    "filter 30 deep": (_retrieve(filter=_nested(30)), "filter", "at most 16"),
    "document without text": (_upsert(document("a", "")), "documents[1].text", "visible"),
    "document without id": (_upsert(document("", "x")), "documents[1].id", "1 to 512"),
    "id with a control character": (_upsert(document("a\nb", "x")), "documents[1].id", "control"),
    "duplicate ids": (_upsert(document("a", "x"), document("a", "y")), "documents[2].id", "unique"),
    "metadata of a wrong type": (
        _upsert(document("a", "x", metadata={"year": "soon"})),
        "documents[1].metadata.year",
        "whole number",
    ),
    "metadata that is infinite": (
        _upsert(document("a", "x", metadata={"other": float("inf")})),
        "documents[1].metadata.other",
        "finite",
    ),
    "no documents": (lambda client, docs: client.upsert(docs, []), "documents", "1 to 256"),
    "too many documents": (
        lambda client, docs: client.upsert(docs, [document(str(number), "x") for number in range(257)]),
        "documents",
        "1 to 256",
    ),
    "document of 50 MB": (_upsert(document("a", "x" * 50_000_000)), "documents[1].text", "at most 10000000"),
    "delete by an empty filter": (
        lambda client, docs: client.delete_documents(docs, filter=common_pb2.Filter()),
        "filter",
        "at least one condition",
    ),
    "delete no ids": (lambda client, docs: client.delete_documents(docs, ids=[]), "ids", "1 to 10000"),
    "count with an unknown field": (
        lambda client, docs: client.count(docs, _match("colour", TEXT)),
        "filter.colour",
        "declared",
    ),
    "invented page token": (lambda client, docs: client.list_documents(docs, 10, "abc"), "page_token", "listing"),
    "invented collection token": (lambda client, docs: client.list_collections(10, "??"), "page_token", "listing"),
    "page size": (lambda client, docs: client.list_documents(docs, 1001), "page_size", "1..1000"),
    "update without a mask": (lambda client, docs: client.update_collection(docs), "update_mask", "at least one"),
    "field without a type": (
        lambda client, docs: client.update_collection(docs, fields={"x": common_pb2.FIELD_TYPE_UNSPECIFIED}),
        "fields.x",
        "declared types",
    ),
    "field with a bad name": (
        lambda client, docs: client.update_collection(docs, fields={"a b": common_pb2.FIELD_TYPE_KEYWORD}),
        "fields.a b",
        "a-z",
    ),
    "unknown backend": (
        lambda client, docs: anext(
            client.generate(retrieval_pb2.GenerateRequest(retrieve=retrieve_request(docs, "q"), backend="gpt"))
        ),
        "backend",
        "extractive",
    ),
    "texts to embed": (lambda client, docs: client.embed(["a", " "]), "texts[1]", "visible"),
    "too much to embed": (lambda client, docs: client.embed(["x" * 1_100_000]), "texts", "1048576 bytes"),
}


@pytest.mark.parametrize("name", CASES)
async def test_bad_input_is_refused_by_field_and_bound(alice: Client, docs: str, name: str) -> None:
    """INVALID_ARGUMENT with the field and the bound; nothing is stored or lost; the next request is fine."""
    call, field, bound = CASES[name]
    before = (await alice.get_collection(docs)).epoch
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(alice, docs)
    info = error_info(refused.value)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info is not None
    assert (info.domain, info.metadata["field"]) == ("headrace", field)
    assert bound in info.metadata["bound"]
    assert info.metadata["request_id"]
    assert (await alice.get_collection(docs)).epoch == before
    assert [hit.document_id for hit in (await alice.retrieve(docs, "document")).hits] == ["kept"]


@pytest.mark.parametrize(
    ("call", "code", "reason"),
    [
        (lambda client, docs: client.retrieve("unknown", "q"), "NOT_FOUND", "COLLECTION_NOT_FOUND"),
        (lambda client, docs: client.get_document(docs, "unknown"), "NOT_FOUND", "DOCUMENT_NOT_FOUND"),
        (lambda client, docs: client.create_collection(docs), "ALREADY_EXISTS", "COLLECTION_EXISTS"),
        (
            lambda client, docs: client.update_collection(docs, fields={"year": common_pb2.FIELD_TYPE_FLOAT}),
            "FAILED_PRECONDITION",
            "SCHEMA_CONFLICT",
        ),
        (lambda client, docs: client.rerank("q", ["a"]), "FAILED_PRECONDITION", "RERANKER_MISSING"),
    ],
)
async def test_what_cannot_be_done_says_why(alice: Client, docs: str, call: Call, code: str, reason: str) -> None:
    """Other refusals have their own status and reason."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(alice, docs)
    info = error_info(refused.value)
    assert info is not None
    assert (refused.value.code().name, info.reason) == (code, reason)


async def test_deadline_of_a_millisecond_ends_as_such(alice: Client, docs: str) -> None:
    """A deadline that cannot be met is DEADLINE_EXCEEDED, and the next request is fine."""
    with pytest.raises(grpc.aio.AioRpcError) as late:
        await alice.retrieve(docs, "x" * 30_000, timeout_s=0.001)
    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert (await alice.retrieve(docs, "document")).hits


async def test_caller_that_leaves_mid_stream_leaves_nothing_running(
    server: ServerProcess, alice: Client, docs: str
) -> None:
    """After the first event the caller goes; the server notes it and serves on."""
    events = alice.generate(retrieval_pb2.GenerateRequest(retrieve=retrieve_request(docs, "which document stays?")))
    first = await anext(events)
    await events.aclose()
    ended = await asyncio.to_thread(
        server.wait_for, "request", lambda line: line["request_id"] == first.retrieved.request_id
    )
    assert ended["code"] in ("CANCELLED", "OK")  # a short answer may have been whole already
    assert (await alice.retrieve(docs, "document")).hits


async def test_import_that_is_refused_early_says_why(alice: Client) -> None:
    """A caller that is still sending gets the reason, not an error of its own channel."""
    many = [document(str(number), "x" * 20_000) for number in range(1000)]
    for _ in range(5):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await alice.import_documents("unknown", many)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_import_names_its_collection_once(alice: Client, server: ServerProcess, docs: str) -> None:
    """The first message names the collection, and no other may be named afterwards."""
    from headrace.v1 import index_pb2_grpc

    messages = [
        index_pb2.ImportDocumentsRequest(collection=docs, documents=[document("a", "x")]),
        index_pb2.ImportDocumentsRequest(collection="other", documents=[document("b", "x")]),
    ]
    metadata = grpc.aio.Metadata(("authorization", "Bearer alice"))
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = index_pb2_grpc.IndexServiceStub(channel)
        for sent, field in ((messages, "collection"), ([], "collection")):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.ImportDocuments(iter(sent), metadata=metadata, timeout=30)
            info = error_info(refused.value)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert info is not None
            assert info.metadata["field"] == field
