"""The server over HTTP as a process: the official client against extractive answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from headrace.v1 import encoding_pb2, retrieval_pb2
from tests.integration.conftest import PATIENCE_S
from tests.integration.http_process import HttpProcess, http_running

ASKED: Any = [{"role": "user", "content": "How thick are the walls of the penstock?"}]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    """A server with the collection `docs` of alice, which answers extractively."""
    with http_running(tmp_path_factory.mktemp("http")) as found:
        asyncio.run(found.fill())
        yield found
        assert found.server.stop() == 0


async def test_http_answers_as_grpc_does(http: HttpProcess) -> None:
    """The same pipeline answers: one text, one citation of one document, one ledger, by either listener."""
    question = ASKED[0]["content"]
    async with http.client() as client, http.server.client("alice") as grpc_client:
        completion: Any = await client.chat.completions.create(
            model="docs", messages=ASKED, extra_body={"headrace": {"cache": False}}
        )
        asked = retrieval_pb2.RetrieveRequest(collection="docs", query=question)
        request = retrieval_pb2.GenerateRequest(retrieve=asked)
        events = [event async for event in grpc_client.generate(request)]
    text = "".join(event.delta.text for event in events)
    assert completion.choices[0].message.content == text
    assert "24 millimetres" in text
    cited = completion.headrace["citations"]
    assert [each["document_id"] for each in cited] == [each.document_id for each in events[-1].completed.citations]
    assert text[cited[0]["answer_start"] : cited[0]["answer_end"]] == f"[{cited[0]['number']}]"
    stages = {cost["stage"] for cost in completion.headrace["ledger"]["stages"]}
    assert {"embed", "search", "generate"} <= stages


async def test_http_streams_the_same_answer(http: HttpProcess) -> None:
    """Streamed and whole are one text, and the stream's head knows what retrieval took."""
    async with http.client() as client:
        whole = await client.chat.completions.create(model="docs@extractive", messages=ASKED)
        stream = await client.chat.completions.create(
            model="docs@extractive",
            messages=ASKED,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"headrace": {"cache": False}},
        )
        chunks: list[Any] = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert "search;dur=" in stream.response.headers["server-timing"]
    assert chunks[-2].headrace["finish_reason"] == "stop"
    assert chunks[-1].usage is not None


def test_http_serves_the_synchronous_client(http: HttpProcess) -> None:
    """Streams, models and embeddings by OpenAI's client for threads."""
    with http.sync_client() as client:
        with client.chat.completions.stream(model="docs", messages=ASKED) as stream:
            text = stream.get_final_completion().choices[0].message.content
        names = [model.id for model in client.models.list()]
        vector = client.embeddings.create(model="default", input="penstock").data[0].embedding
    assert "24 millimetres" in (text or "")
    assert names[0] == "docs"
    assert len(vector) == 384


async def test_http_embeds_as_grpc_does(http: HttpProcess) -> None:
    """The vectors are those of the encoder, bit for bit, and questions may say that they are questions."""
    texts = ["a steel pipe", "eels"]
    async with http.client() as client, http.server.client("alice") as grpc_client:
        listed = await client.embeddings.create(model="default", input=texts, extra_body={"input_type": "query"})
        embedded = await grpc_client.embed(texts, kind=encoding_pb2.TEXT_KIND_QUERY)
    for entry, embedding in zip(listed.data, embedded.embeddings, strict=True):
        assert np.array_equal(np.float32(entry.embedding), np.float32(embedding.vector))


async def test_http_tells_errors_as_openai_does(http: HttpProcess) -> None:
    """The client's own exceptions arise, and one tenant's collection does not exist for another."""
    ask: Any = {"messages": ASKED}
    async with http.client() as alice, http.client("bob") as bob, http.client("nobody") as nobody:
        with pytest.raises(openai.NotFoundError) as missing:
            await alice.chat.completions.create(model="nothing", **ask)
        with pytest.raises(openai.NotFoundError):
            await bob.chat.completions.create(model="docs", **ask)
        with pytest.raises(openai.AuthenticationError):
            await nobody.chat.completions.create(model="docs", **ask)
        with pytest.raises(openai.BadRequestError) as unknown:
            await alice.chat.completions.create(model="docs@nobody", **ask)
        with pytest.raises(openai.BadRequestError) as filtered:
            await alice.chat.completions.create(
                model="docs", **ask, extra_body={"headrace": {"filter": "year = 2020"}}, stream=True
            )
    assert (missing.value.code, missing.value.param) == ("COLLECTION_NOT_FOUND", None)
    assert (unknown.value.code, unknown.value.param) == ("BACKEND_UNKNOWN", "model")
    assert filtered.value.code == "UNKNOWN_FIELD"


async def test_http_answers_health_without_a_key(http: HttpProcess) -> None:
    """Whoever balances the load has no key."""
    async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as plain:
        reply = await plain.get(http.base_url.replace("/v1", "/health"))
    assert (reply.status_code, reply.json()) == (200, {"status": "serving"})
