"""The whole path through a real server process: collections, documents, questions and answers."""

from __future__ import annotations

import os
import stat
import urllib.request
import uuid
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from headrace.v1 import common_pb2, retrieval_pb2
from retrieval.client import Client, document, error_info, retrieve_request
from tests.integration.conftest import ServerProcess

FIELDS = {"year": common_pb2.FIELD_TYPE_INTEGER, "lang": common_pb2.FIELD_TYPE_KEYWORD}
PUMP = document(
    "pump", "The pump seal must be replaced every two years.", title="Pump", metadata={"year": 2020, "lang": "en"}
)
VALVE = document(
    "valve", "Torque the valve bonnet to twenty newton metres.", title="Valve", metadata={"year": 2021, "lang": "en"}
)


@pytest.fixture
async def alice(server: ServerProcess) -> AsyncIterator[Client]:
    """A client of tenant alice, who may read and write."""
    async with server.client("alice") as client:
        yield client


@pytest.fixture
async def docs(alice: Client) -> str:
    """A collection of alice's with two documents."""
    name = f"docs-{uuid.uuid4().hex[:8]}"
    await alice.create_collection(name, fields=FIELDS, description="manuals")
    await alice.upsert(name, [PUMP, VALVE])
    return name


async def _failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    assert error_info(failed.value) is not None
    return failed.value


async def test_retrieve_finds_and_assembles(alice: Client, docs: str) -> None:
    """A question finds its passage, with raw scores, a context within its budget, and a ledger that adds up."""
    reply = await alice.retrieve(docs, "how often is the seal replaced?", top_k=1)
    [hit] = reply.hits
    assert (hit.document_id, hit.title) == ("pump", "Pump")
    assert hit.text == PUMP.text[hit.start : hit.end]
    assert hit.metadata["year"].integer_value == 2020
    assert hit.scores.HasField("dense")
    assert hit.scores.HasField("sparse")
    assert reply.context.tokens <= reply.context.budget_tokens
    assert sum(stage.wall_ns for stage in reply.ledger.stages) == reply.ledger.total_ns
    assert reply.epoch.write_sequence > 0


async def test_retrieve_takes_the_filter_language(alice: Client, docs: str) -> None:
    """A filter as text restricts every branch; one that matches nothing gives an empty result."""
    pytest.importorskip("indexers.filter_text")
    only = await alice.retrieve(docs, "seal", filter='lang = "en" AND year >= 2021')
    none = await alice.retrieve(docs, "seal", filter="year > 3000")
    assert [hit.document_id for hit in only.hits] == ["valve"]
    assert list(none.hits) == []


async def test_generate_streams_a_cited_answer(alice: Client, docs: str) -> None:
    """First what was retrieved, then the text in pieces, last how it ended, with citations that point into the text."""
    request = retrieval_pb2.GenerateRequest(retrieve=retrieve_request(docs, "how often is the pump seal replaced?"))
    events = [event async for event in alice.generate(request)]
    kinds = [event.WhichOneof("event") for event in events]
    answer = "".join(event.delta.text for event in events)
    completed = events[-1].completed
    assert (kinds[0], kinds[-1], set(kinds[1:-1])) == ("retrieved", "completed", {"delta"})
    assert completed.finish_reason == retrieval_pb2.FINISH_REASON_STOP
    assert answer[completed.citations[0].start : completed.citations[0].end] == "[1]"
    assert "two years" in answer


async def test_generate_without_evidence_says_so(alice: Client) -> None:
    """An empty collection gives no answer text, but a finish reason."""
    name = f"empty-{uuid.uuid4().hex[:8]}"
    await alice.create_collection(name)
    request = retrieval_pb2.GenerateRequest(retrieve=retrieve_request(name, "anything?"))
    events = [event async for event in alice.generate(request)]
    assert [event.WhichOneof("event") for event in events] == ["retrieved", "completed"]
    assert events[-1].completed.finish_reason == retrieval_pb2.FINISH_REASON_NO_EVIDENCE


async def test_collections_are_managed(alice: Client, docs: str) -> None:
    """A collection is created, changed, listed by pages, and deleted with its documents."""
    changed = await alice.update_collection(docs, fields={"author": common_pb2.FIELD_TYPE_KEYWORD}, description="new")
    assert (changed.description, set(changed.fields)) == ("new", {"year", "lang", "author"})
    assert (changed.document_count, changed.dim) == (2, 384)
    names, token = [], ""
    while True:
        page = await alice.list_collections(1, token)
        names += [collection.name for collection in page.collections]
        if not (token := page.next_page_token):
            break
    assert docs in names
    assert names == sorted(set(names))
    await alice.delete_collection(docs)
    assert (await _failure(alice.get_collection(docs))).code() is grpc.StatusCode.NOT_FOUND


async def test_documents_are_managed(alice: Client, docs: str) -> None:
    """Documents are returned as they were sent, listed by pages, counted by filter and deleted at once."""
    assert await alice.get_document(docs, "pump") == _stored(PUMP)
    first = await alice.list_documents(docs, 1)
    rest = await alice.list_documents(docs, 1, first.next_page_token)
    assert [page.documents[0].id for page in (first, rest)] == ["pump", "valve"]
    assert rest.next_page_token == ""
    year = common_pb2.Condition(number_range=common_pb2.NumberRange(field="year", gte=2021))
    assert (await alice.count(docs, common_pb2.Filter(must=[year]))).documents == 1
    assert (await alice.delete_documents(docs, filter=common_pb2.Filter(must=[year]))).deleted == 1
    assert (await alice.delete_documents(docs, ids=["pump", "nobody"])).deleted == 1
    assert list((await alice.retrieve(docs, "seal valve")).hits) == []


def _stored(sent: Any) -> Any:
    stored = type(sent)()
    stored.CopyFrom(sent)
    stored.format = 1  # plain, which an unspecified format means
    return stored


async def test_upsert_skips_what_has_not_changed(alice: Client, docs: str) -> None:
    """A document that is stored as it is costs nothing again."""
    result = await alice.upsert(docs, [PUMP, document("new", "Something else entirely.")])
    assert (result.indexed, result.unchanged, result.failed) == (1, 1, 0)


async def test_import_goes_on_past_bad_documents(alice: Client, docs: str) -> None:
    """An import takes any number of documents; those that are refused are named, the rest is found (JOB-07)."""

    async def documents() -> AsyncIterator[Any]:
        for number in range(150):
            yield document(f"d{number}", f"Paragraph number {number} about turbines.")
        yield document("blank", "  ")
        yield document("typed", "text", metadata={"year": "not a year"})
        yield document("d149", "The same id again, which replaces the first.")

    result = await alice.import_documents(docs, documents())
    assert (result.indexed, result.failed) == (150, 3)
    assert {failure.document_id for failure in result.failures} == {"blank", "typed", "d149"}
    assert (await alice.count(docs)).documents == 152
    again = await alice.import_documents(docs, [document("d1", "Paragraph number 1 about turbines.")])
    assert (again.indexed, again.unchanged) == (0, 1)


async def test_build_keeps_the_answers(alice: Client, docs: str) -> None:
    """A new generation serves the same documents."""
    before = await alice.retrieve(docs, "torque", top_k=1)
    epoch = await alice.build_collection(docs)
    after = await alice.retrieve(docs, "torque", top_k=1)
    assert epoch.generation > before.epoch.generation
    assert [hit.chunk_id for hit in after.hits] == [hit.chunk_id for hit in before.hits]


async def test_tenants_do_not_see_each_other(server: ServerProcess, alice: Client, docs: str) -> None:
    """For bob, alice's collection and documents do not exist: every call answers as for a name made up (TEN-03)."""
    async with server.client("bob") as bob:
        await bob.create_collection(own := f"own-{uuid.uuid4().hex[:8]}")
        calls: dict[str, Any] = {
            "retrieve": lambda name: bob.retrieve(name, "seal"),
            "collection": bob.get_collection,
            "delete": bob.delete_collection,
            "document": lambda name: bob.get_document(name, "pump"),
            "documents": bob.list_documents,
            "delete documents": lambda name: bob.delete_documents(name, ids=["pump"]),
            "count": bob.count,
            "build": bob.build_collection,
            "upsert": lambda name: bob.upsert(name, [PUMP]),
        }
        for call in calls.values():
            theirs, nobodys = await _failure(call(docs)), await _failure(call("made-up"))
            assert theirs.code() is nobodys.code() is grpc.StatusCode.NOT_FOUND
            assert (theirs.details() or "").replace(docs, "made-up") == nobodys.details()
        missing = await _failure(bob.get_document(own, "pump"))
        assert missing.code() is grpc.StatusCode.NOT_FOUND
        assert docs not in [collection.name for collection in (await bob.list_collections()).collections]
        assert docs not in [collection.name for collection in (await bob.info()).collections]
    assert (await alice.count(docs)).documents == 2


async def test_same_name_is_two_collections_for_two_tenants(server: ServerProcess, alice: Client, docs: str) -> None:
    """A collection's name belongs to its tenant."""
    async with server.client("bob") as bob:
        await bob.create_collection(docs)
        assert list((await bob.retrieve(docs, "seal")).hits) == []
    assert len((await alice.retrieve(docs, "seal")).hits) == 2


async def test_roles_are_needed(server: ServerProcess, alice: Client, docs: str) -> None:
    """Settings are shown to an administrator only, and only one may reload them; secrets stay masked."""
    assert list((await alice.info()).settings) == []
    assert (await _failure(alice.reload_config())).code() is grpc.StatusCode.PERMISSION_DENIED
    async with server.client("root") as root:
        info = await root.info()
        assert list((await root.reload_config()).changed) == []
    paths = {setting.path: setting for setting in info.settings}
    assert paths["server.port"].origin == "file"
    assert paths["retrieval.top_k"].reloadable
    assert info.models[0].dim == 384
    assert info.models[0].ns_per_token > 0
    assert list(info.backends) == ["extractive"]


async def test_reflection_needs_a_key(server: ServerProcess) -> None:
    """With keys configured, the list of services is for those who have one (GRP-13)."""
    request = reflection_pb2.ServerReflectionRequest(list_services="")

    async def ask(key: str) -> Any:
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            metadata = grpc.aio.Metadata(("authorization", f"Bearer {key}"))
            return await stub.ServerReflectionInfo(iter([request]), metadata=metadata, timeout=30).read()

    services = [service.name for service in (await ask("alice")).list_services_response.service]
    assert "headrace.v1.RetrievalService" in services
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask("nobody")
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_unix_socket_serves_its_user_only(server: ServerProcess, docs: str) -> None:
    """An app in the same pod connects over the socket, which only this user may open, with a key as elsewhere."""
    assert stat.S_IMODE(os.stat(server.unix_socket).st_mode) == 0o600  # noqa: PTH116
    async with server.client("alice", f"unix:{server.unix_socket}") as client:
        assert len((await client.retrieve(docs, "seal")).hits) == 2
    async with server.client(None, f"unix:{server.unix_socket}") as client:
        assert (await _failure(client.retrieve(docs, "seal"))).code() is grpc.StatusCode.UNAUTHENTICATED


async def test_metrics_and_log_agree_with_the_reply(server: ServerProcess, alice: Client, docs: str) -> None:
    """The log line names the stages of the reply; the scrape counts the request; neither holds the question."""
    reply = await alice.retrieve(docs, "a very particular question")
    line = server.wait_for("request", lambda line: line["request_id"] == reply.request_id)
    assert (line["tenant"], line["method"], line["code"]) == ("alice", "RetrievalService/Retrieve", "OK")
    assert set(line["stages_ms"]) >= {"admit", "lookup", "embed", "search", "fuse", "fetch", "assemble", "other"}
    assert "particular" not in str(server.seen)
    scrape = urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics").read().decode()
    assert 'headrace_requests_total{code="OK",method="RetrievalService/Retrieve"}' in scrape
    assert 'headrace_stage_seconds_bucket{le="0.001",part="wall",stage="search"}' in scrape
    assert "particular" not in scrape
