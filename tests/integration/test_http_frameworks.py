"""LangChain's and LlamaIndex's own OpenAI classes against the server over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TypeAlias

import numpy as np
import openai
import pytest

from tests.integration.http_process import HttpProcess, http_running

QUESTION = "How thick are the walls of the penstock?"
SAID = "24 millimetres"
Clients: TypeAlias = tuple[openai.DefaultHttpxClient, openai.DefaultAsyncHttpxClient]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    """A server with the collection `docs` of alice, which answers extractively."""
    with http_running(tmp_path_factory.mktemp("frameworks")) as found:
        asyncio.run(found.fill())
        yield found
        assert found.server.stop() == 0


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    """What the classes speak HTTP with; they do not close clients of their own."""
    with openai.DefaultHttpxClient() as client:
        async with openai.DefaultAsyncHttpxClient() as async_client:
            yield client, async_client


async def test_http_serves_langchain_chat(http: HttpProcess, clients: Clients) -> None:
    """Invoked and streamed, by threads and by the event loop; usage comes with the message."""
    langchain = pytest.importorskip("langchain_openai")
    chat = langchain.ChatOpenAI(
        model="docs", base_url=http.base_url, api_key="alice", http_client=clients[0], http_async_client=clients[1]
    )
    messages = [("system", "Be short."), ("human", "What is a weir?"), ("ai", "A low dam."), ("human", QUESTION)]
    whole = await asyncio.to_thread(chat.invoke, messages)
    streamed = [chunk async for chunk in chat.astream(QUESTION, stream_usage=True)]
    assert SAID in whole.content
    assert SAID in "".join(chunk.content for chunk in streamed)
    assert whole.usage_metadata["total_tokens"] >= 0
    assert whole.response_metadata["finish_reason"] == "stop"
    assert any(chunk.response_metadata.get("finish_reason") == "stop" for chunk in streamed)


async def test_http_serves_langchain_embeddings(http: HttpProcess, clients: Clients) -> None:
    """Texts go as texts once the class is told not to tokenize them itself."""
    langchain = pytest.importorskip("langchain_openai")
    embeddings = langchain.OpenAIEmbeddings(
        model="default",
        base_url=http.base_url,
        api_key="alice",
        check_embedding_ctx_length=False,
        http_client=clients[0],
        http_async_client=clients[1],
    )
    vectors = await embeddings.aembed_documents(["a steel pipe", "eels"])
    assert np.shape(vectors) == (2, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def test_http_serves_llama_index_chat(http: HttpProcess, clients: Clients) -> None:
    """Chatted, streamed and by the event loop."""
    like = pytest.importorskip("llama_index.llms.openai_like")
    messages = pytest.importorskip("llama_index.core.llms")
    llm = like.OpenAILike(
        model="docs",
        api_base=http.base_url,
        api_key="alice",
        is_chat_model=True,
        http_client=clients[0],
        async_http_client=clients[1],
    )
    asked = [messages.ChatMessage(role="user", content=QUESTION)]
    whole = await asyncio.to_thread(llm.chat, asked)
    *_, last = [part async for part in await llm.astream_chat(asked)]
    assert SAID in whole.message.content
    assert SAID in last.message.content


async def test_http_serves_llama_index_embeddings(http: HttpProcess, clients: Clients) -> None:
    """Questions and texts."""
    embedding = pytest.importorskip("llama_index.embeddings.openai")
    model = embedding.OpenAIEmbedding(
        model_name="default",
        api_base=http.base_url,
        api_key="alice",
        http_client=clients[0],
        async_http_client=clients[1],
    )
    assert len(await model.aget_query_embedding("a steel pipe")) == 384
    assert len(await model.aget_text_embedding_batch(["a steel pipe", "eels"])) == 2
