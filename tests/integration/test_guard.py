"""The interceptor and the servicers over a loopback channel, with scripted parts behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from headrace.v1 import (
    admin_pb2,
    common_pb2,
    encoding_pb2,
    encoding_pb2_grpc,
    index_pb2,
    retrieval_pb2,
    retrieval_pb2_grpc,
)
from retrieval.answers.operating import AnswerOperations
from retrieval.answers.risks import Risks
from retrieval.answers.store import AnswerStore
from retrieval.client import Client, error_info
from retrieval.identity import Authenticator, hash_of
from retrieval.live import LiveSettings
from retrieval.server.access import ROLES
from retrieval.server.draining import Drain
from retrieval.server.interceptor import Guard
from retrieval.server.limits import Limits
from retrieval.server.services.encoding import Counters, EncodingService
from retrieval.server.services.retrieval import RetrievalService
from retrieval.settings import Settings
from retrieval.settings.load import Loaded
from retrieval.settings.service import ApiKey, AuthSettings
from retrieval.telemetry.metrics import Metrics
from tests.fakes.encoders import HashEncoder, PieceCounter
from tests.fakes.request_path import ScriptedPath

RETRIEVE = "RetrievalService/Retrieve"


@dataclass
class _Rig:
    """A server in this process, and what is behind it."""

    address: str
    path: ScriptedPath
    metrics: Metrics
    drain: Drain

    def client(self, api_key: str | None = None) -> Client:
        return Client(self.address, api_key, timeout_s=10.0)

    def channel(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(self.address)

    def count(self, method: str, code: str) -> float:
        labels = {"method": method, "code": code}
        return self.metrics.registry.get_sample_value("headrace_requests_total", labels) or 0.0

    def running(self, method: str) -> float:
        return self.metrics.registry.get_sample_value("headrace_in_flight", {"method": method}) or 0.0


async def _serve(*keys: ApiKey) -> AsyncIterator[_Rig]:
    settings = Settings(auth=AuthSettings(keys=keys))
    live = LiveSettings(loaded := Loaded(settings, {}, None), lambda: loaded)
    rig = _Rig("", ScriptedPath(), Metrics(), Drain())
    risks = Risks()
    operations = AnswerOperations(AnswerStore(100_000, risks.forget), risks)
    guard = Guard(Authenticator(settings.auth), Limits(live), rig.metrics, rig.drain)
    server = grpc.aio.server(interceptors=[guard])
    retrieval_pb2_grpc.add_RetrievalServiceServicer_to_server(RetrievalService(rig.path, operations, live), server)
    encoding = EncodingService(HashEncoder(), None, Counters(PieceCounter(), PieceCounter()))
    encoding_pb2_grpc.add_EncodingServiceServicer_to_server(encoding, server)
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    rig.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield rig
    await server.stop(0)


@pytest.fixture
async def rig() -> AsyncIterator[_Rig]:
    """A server without keys."""
    async for found in _serve():
        yield found


@pytest.fixture
async def locked_rig() -> AsyncIterator[_Rig]:
    """A server with a key that may read, and one that may write."""
    keys = (
        ApiKey(name="reader", sha256=hash_of("r"), tenant="a", roles=("read",)),
        ApiKey(name="writer", sha256=hash_of("w"), tenant="b", roles=("write",)),
    )
    async for found in _serve(*keys):
        yield found


async def _failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value


async def test_guard_hides_unexpected_errors(rig: _Rig) -> None:
    """An unexpected error is INTERNAL with the request's id and nothing of its text; our log has it all (GRP-02)."""
    with capture_logs() as lines:
        async with rig.client() as client:
            error = await _failure(client.retrieve("docs", "please raise"))
    info = error_info(error)
    assert error.code() is grpc.StatusCode.INTERNAL
    assert info is not None
    for secret in ("SECRET1", "ValueError", "/"):
        assert secret not in f"{error.details()}"
        assert secret not in f"{info.metadata}"
    [line] = [line for line in lines if line["event"] == "request"]
    assert info.metadata["request_id"] in (error.details() or "")
    assert (line["request_id"], line["log_level"]) == (info.metadata["request_id"], "error")
    assert "SECRET1" in str(line["exc_info"])


async def test_guard_hides_errors_in_the_middle_of_a_stream(rig: _Rig) -> None:
    """A stream that breaks ends with the same status, after what was sent (GRP-02)."""
    request = retrieval_pb2.GenerateRequest(retrieve=retrieval_pb2.RetrieveRequest(collection="docs", query="break"))
    with capture_logs():
        async with rig.client() as client:
            events = client.generate(request)
            kinds = [(await anext(events)).WhichOneof("event") for _ in range(2)]
            error = await _failure(anext(events))
    assert kinds == ["retrieved", "delta"]
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "SECRET1" not in f"{error.details()}"


async def test_guard_answers_when_work_was_cancelled_inside(rig: _Rig) -> None:
    """A cancellation that is not the caller's becomes a status at once, for unary calls and streams (GRP-01)."""
    inner = retrieval_pb2.RetrieveRequest(collection="docs", query="cancelled")
    with capture_logs():
        async with rig.client() as client:
            unary = await _failure(client.retrieve("docs", "cancelled"))
            stream = await _failure(anext(client.generate(retrieval_pb2.GenerateRequest(retrieve=inner))))
    for error in (unary, stream):
        info = error_info(error)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert info is not None
        assert info.reason == "CANCELLED_INSIDE"


async def test_guard_counts_an_aborted_call_once(rig: _Rig) -> None:
    """Three refusals count as three of their code and none of OK, and none is logged as an error (GRP-03)."""
    with capture_logs() as lines:
        async with rig.client() as client:
            for _ in range(3):
                error = await _failure(client.retrieve("docs", ""))
                assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (rig.count(RETRIEVE, "INVALID_ARGUMENT"), rig.count(RETRIEVE, "OK")) == (3, 0)
    assert {line["log_level"] for line in lines} == {"info"}


async def test_guard_refuses_overload_with_a_time_to_come_back(rig: _Rig) -> None:
    """Overload is RESOURCE_EXHAUSTED."""
    async with rig.client() as client:
        error = await _failure(client.retrieve("docs", "overloaded"))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_guard_closes_the_work_of_callers_that_leave(rig: _Rig) -> None:
    """Streams that are left after the first event end behind the scenes at once, and nothing stays running (GRP-04)."""
    inner = retrieval_pb2.RetrieveRequest(collection="docs", query="endless")
    count = 30
    with capture_logs() as lines:
        async with rig.client() as client:
            for _ in range(count):
                events = client.generate(retrieval_pb2.GenerateRequest(retrieve=inner))
                assert (await anext(events)).HasField("retrieved")
                await events.aclose()
            while rig.path.closed < count or rig.count("RetrievalService/Generate", "CANCELLED") < count:
                await asyncio.sleep(0)
    assert rig.running("RetrievalService/Generate") == 0
    assert {line["code"] for line in lines if line["event"] == "request"} == {"CANCELLED"}


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x02\xff\xfe",  # collection is no UTF-8
        b"\x0a\xff\xff\xff\xff\x0f",  # a length beyond the message
    ],
)
async def test_guard_refuses_what_does_not_parse(rig: _Rig, data: bytes) -> None:
    """A message that does not parse is the caller's fault, with a reason, and the next request is fine."""
    async with rig.channel() as channel:
        raw: Any = channel.unary_unary("/headrace.v1.RetrievalService/Retrieve")
        error = await _failure(raw(data, timeout=10))
        info = error_info(error)
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert info is not None
        assert info.metadata["field"] == "request"
        assert "UTF-8" in info.metadata["bound"]
        good = retrieval_pb2.RetrieveRequest(collection="docs", query="q").SerializeToString()
        assert await raw(good, timeout=10)


async def test_guard_refuses_filters_that_nest_too_deep(rig: _Rig) -> None:
    """A filter nested 1,000 deep does not parse, and is refused as such."""
    data = common_pb2.Filter().SerializeToString()
    for _ in range(1000):
        condition = b"\x2a" + _varint(len(data)) + data  # Condition.filter
        data = b"\x0a" + _varint(len(condition)) + condition  # Filter.must
    request = b"\x0a\x04docs\x12\x01q\x22" + _varint(len(data)) + data
    async with rig.channel() as channel:
        raw: Any = channel.unary_unary("/headrace.v1.RetrievalService/Retrieve")
        error = await _failure(raw(request, timeout=10))
    info = error_info(error)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info is not None
    assert "100 deep" in info.metadata["bound"]
    assert rig.path.requests == []


def _varint(number: int) -> bytes:
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


@pytest.mark.parametrize(("given", "kept"), [("my-id.1", True), ("no spaces", False), ("x" * 65, False)])
async def test_guard_names_each_request(rig: _Rig, given: str, kept: bool) -> None:
    """A sane name from the caller is kept, another is replaced; it comes back in trailing metadata and reply."""
    async with rig.channel() as channel:
        stub = retrieval_pb2_grpc.RetrievalServiceStub(channel)
        request = retrieval_pb2.RetrieveRequest(collection="docs", query="q")
        call = stub.Retrieve(request, metadata=grpc.aio.Metadata(("x-request-id", given)), timeout=10)
        reply, trailing = await call, dict(await call.trailing_metadata())
    assert (reply.request_id == given) is kept
    assert trailing["x-request-id"] == reply.request_id


async def test_guard_caps_deadlines(rig: _Rig) -> None:
    """The shorter of the caller's deadline and ours holds."""
    async with rig.channel() as channel:
        stub = retrieval_pb2_grpc.RetrievalServiceStub(channel)
        request = retrieval_pb2.RetrieveRequest(collection="docs", query="q")
        for timeout in (None, 5, 1000):
            await stub.Retrieve(request, timeout=timeout)
    none, short, long = (deadline.budget_ms for deadline in rig.path.deadlines)
    assert (none, long) == (10_000, 10_000)
    assert 4_000 < short < 6_000


@pytest.mark.parametrize(
    "metadata", [[], [("authorization", "Bearer r")] * 2, [("authorization", "Bearer x")], [("authorization", "r")]]
)
async def test_guard_lets_nothing_through_without_a_key(locked_rig: _Rig, metadata: list[tuple[str, str]]) -> None:
    """Without exactly one known key a call is refused before anything sees the question (TEN-02)."""
    async with locked_rig.channel() as channel:
        stub = retrieval_pb2_grpc.RetrievalServiceStub(channel)
        request = retrieval_pb2.RetrieveRequest(collection="docs", query="q")
        error = await _failure(stub.Retrieve(request, metadata=grpc.aio.Metadata(*metadata), timeout=10))
    info = error_info(error)
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert info is not None
    assert info.reason == "UNAUTHENTICATED"
    assert locked_rig.path.requests == []


async def test_guard_takes_tenant_and_role_from_the_key(locked_rig: _Rig) -> None:
    """The reader's tenant reaches the pipeline; a key that may only write may not read."""
    async with locked_rig.client("r") as reader, locked_rig.client("w") as writer:
        await reader.retrieve("docs", "q")
        error = await _failure(writer.retrieve("docs", "q"))
    info = error_info(error)
    assert [request.tenant for request in locked_rig.path.requests] == ["a"]
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED
    assert info is not None
    assert info.metadata["role"] == "read"


async def test_guard_leaves_health_open(locked_rig: _Rig) -> None:
    """Health needs no key; an unknown service is NOT_FOUND (GRP-13, GRP-14)."""
    async with locked_rig.channel() as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        reply = await stub.Check(health_pb2.HealthCheckRequest(), timeout=10)
        error = await _failure(stub.Check(health_pb2.HealthCheckRequest(service="nope"), timeout=10))
    assert reply.status == health_pb2.HealthCheckResponse.SERVING
    assert error.code() is grpc.StatusCode.NOT_FOUND


async def test_guard_leaves_unknown_methods_unknown(rig: _Rig) -> None:
    """A method that nobody serves is UNIMPLEMENTED."""
    async with rig.channel() as channel:
        raw: Any = channel.unary_unary("/headrace.v1.RetrievalService/Nope")
        error = await _failure(raw(b"", timeout=10))
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_guard_drains(rig: _Rig) -> None:
    """While draining, what runs may end, health is answered, and new calls are sent elsewhere (GRP-05)."""
    async with rig.client() as client, rig.channel() as channel:
        running = asyncio.create_task(client.retrieve("docs", "wait"))
        await rig.path.entered.wait()
        draining = asyncio.create_task(rig.drain.finish(10))
        await asyncio.sleep(0)
        error = await _failure(client.retrieve("docs", "q"))
        assert (await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)).status
        rig.path.release.set()
        assert (await running).request_id
        await draining
    info = error_info(error)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert info is not None
    assert info.reason == "SHUTTING_DOWN"


def test_access_lists_every_method() -> None:
    """Each method of each service has a role; the table holds no others."""
    modules = (retrieval_pb2, encoding_pb2, index_pb2, admin_pb2)
    services = [service for module in modules for service in module.DESCRIPTOR.services_by_name.values()]
    assert {f"/{service.full_name}/{method.name}" for service in services for method in service.methods} == set(ROLES)


async def test_embed_fails_only_the_item_that_failed(rig: _Rig) -> None:
    """One text without a vector has its error, the others have theirs (EMB-06)."""
    texts = [f"t{number}" for number in range(8)]
    texts[3] = "POISON"
    async with rig.client() as client:
        reply = await client.embed(texts)
    failed = [bool(embedding.error) for embedding in reply.embeddings]
    assert failed == [number == 3 for number in range(8)]
    assert [len(embedding.vector) for embedding in reply.embeddings] == [0 if bad else reply.dim for bad in failed]


async def test_embed_goes_one_way_for_one_and_many(rig: _Rig) -> None:
    """A text is cut, counted and encoded alike by itself and in a list (EMB-07)."""
    long = "valve " * 300
    async with rig.client() as client:
        [alone] = (await client.embed([long])).embeddings
        [first, *_] = (await client.embed([long] + ["x"] * 20)).embeddings
    assert alone == first
    assert (alone.truncated, alone.token_count) == (True, HashEncoder.max_tokens)


async def test_embed_names_limit_and_count_when_it_may_not_cut(rig: _Rig) -> None:
    """Without truncation a text above the limit is refused with both numbers (EMB-20)."""
    async with rig.client() as client:
        error = await _failure(client.embed(["short", "w " * 600], truncate=False))
    info = error_info(error)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info is not None
    assert info.metadata["field"] == "texts[1]"
    assert (info.metadata["limit_tokens"], info.metadata["token_count"]) == ("256", "602")


async def test_embed_refuses_a_missing_kind(rig: _Rig) -> None:
    """Whether a text is a query or a passage is not guessed (EMB-05)."""
    async with rig.client() as client:
        error = await _failure(client.embed(["x"], kind=encoding_pb2.TEXT_KIND_UNSPECIFIED))
    info = error_info(error)
    assert info is not None
    assert info.metadata["field"] == "kind"


async def test_rerank_without_a_model_is_a_precondition(rig: _Rig) -> None:
    """A rerank that is not configured says so."""
    async with rig.client() as client:
        error = await _failure(client.rerank("q", ["a"]))
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_count_tokens_counts_each_text(rig: _Rig) -> None:
    """Counts come in the order sent; an empty text has none."""
    async with rig.client() as client:
        reply = await client.count_tokens(["one two", "", "abcdefghi"])
    assert (list(reply.counts), reply.tokenizer) == ([2, 0, 2], "pieces")
