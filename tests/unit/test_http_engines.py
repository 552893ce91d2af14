"""Embeddings, rerank and models over HTTP, with scripted engines behind them."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from encoders.types import TextKind
from tests.fakes.encoders import unit_vector
from tests.fakes.http_rig import HttpRig, http_rig
from tests.fakes.rerankers import TOKENS


def _by_length(text: str) -> float:
    return float(len(text))


async def _post(rig: HttpRig, path: str, **body: Any) -> httpx.Response:
    async with rig.http() as http:
        return await http.post(path, json=body)


async def test_embeddings_give_each_text_its_vector() -> None:
    """One text or many, as numbers or as base64; the index is the text's place."""
    async with http_rig() as rig, rig.client() as client:
        many = await client.embeddings.create(model="hash", input=["one", "two"])
        one = await client.embeddings.create(model="default", input="one", encoding_format="float", dimensions=8)
        raw = await _post(rig, "/v1/embeddings", model="hash", input="two", encoding_format="base64")
    assert [entry.index for entry in many.data] == [0, 1]
    assert one.data[0].embedding == many.data[0].embedding
    assert np.allclose(one.data[0].embedding, unit_vector("one", 8))
    numbers = np.frombuffer(base64.b64decode(raw.json()["data"][0]["embedding"]), "<f4")
    assert numbers.tolist() == many.data[1].embedding
    assert (many.usage.prompt_tokens, many.model) == (6, "hash")


async def test_embeddings_take_the_kind_of_text() -> None:
    """Questions and passages may be encoded in two ways; a passage is what a text is unless it says otherwise."""
    async with http_rig() as rig:
        kinds = []
        encode = rig.encoder.encode

        async def noting(texts: Any, kind: TextKind, work_class: Any, deadline_ns: Any) -> Any:
            kinds.append(kind)
            return await encode(texts, kind, work_class, deadline_ns)

        rig.encoder.encode = noting  # type: ignore[method-assign]
        await _post(rig, "/v1/embeddings", input="x")
        await _post(rig, "/v1/embeddings", input="x", input_type="query")
    assert kinds == [TextKind.PASSAGE, TextKind.QUERY]


async def test_embeddings_name_what_they_cannot_do() -> None:
    """Tokens, another model's name, another length, a text that is too long or none."""
    refused: list[tuple[dict[str, Any], str]] = [
        ({"input": [[1, 2]]}, "input"),
        ({"input": [1, 2]}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", " "]}, "input[1]"),
        ({"input": ["a", "w " * 600]}, "input[1]"),
        ({"input": "a", "model": "text-embedding-3-small"}, "model"),
        ({"input": "a", "dimensions": 4}, "dimensions"),
        ({"input": "a", "input_type": "other"}, "input_type"),
    ]
    async with http_rig() as rig:
        for body, param in refused:
            reply = await _post(rig, "/v1/embeddings", **body)
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
        cut = await _post(rig, "/v1/embeddings", input="w " * 600, truncate=True)
        assert cut.json()["usage"]["prompt_tokens"] == 256


async def test_embeddings_fail_as_a_whole() -> None:
    """A client of this API takes one vector for each text or an error; there is no place for less."""
    async with http_rig() as rig:
        failed = await _post(rig, "/v1/embeddings", input=["a", "POISON"])
    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "ENCODING_FAILED")


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
async def test_rerank_answers_cohere_and_jina(path: str) -> None:
    """Results come best first, and each index is the place in the list that was sent (RER-01)."""
    async with http_rig(logit_of=_by_length) as rig:
        reply = await _post(rig, path, model="scripted", query="q", documents=["a", "ccc", {"text": "bb"}], top_n=2)
        whole = await _post(rig, path, query="q", documents=["a", "ccc"], top_n=9, return_documents=True)
    results = reply.json()["results"]
    assert [result["index"] for result in results] == [1, 2]
    assert results[0]["relevance_score"] > results[1]["relevance_score"]
    assert reply.json()["usage"]["total_tokens"] > 0
    assert [result["document"] for result in whole.json()["results"]] == [{"text": "ccc"}, {"text": "a"}]


async def test_rerank_answers_tei() -> None:
    """A bare list, best first, with scores between 0 and 1 or as logits (RER-01)."""
    async with http_rig(logit_of=_by_length) as rig:
        reply = await _post(rig, "/rerank", query="q", texts=["a", "ccc", "bb"], return_text=True, truncate=True)
        raw = await _post(rig, "/rerank", query="q", texts=["a", "ccc"], raw_scores=True)
    assert [(result["index"], result["text"]) for result in reply.json()] == [(1, "ccc"), (2, "bb"), (0, "a")]
    assert all(0.0 < result["score"] < 1.0 for result in reply.json())
    assert raw.json() == [{"index": 1, "score": 3.0}, {"index": 0, "score": 1.0}]


async def test_rerank_takes_a_thousand_passages() -> None:
    """More passages than one call takes are ranked as one list: equals in their order, the best only when asked so."""
    documents = ["x" * (1 + place % 50) for place in range(1000)]
    best = sorted(range(1000), key=lambda place: -len(documents[place]))
    async with http_rig(logit_of=_by_length) as rig:
        whole = await _post(rig, "/v1/rerank", query="q", documents=documents)
        few = await _post(rig, "/v1/rerank", query="q", documents=documents, top_n=30)
        more = await _post(rig, "/v1/rerank", query="q", documents=[*documents, "x"])
        blank = await _post(rig, "/v1/rerank", query="q", documents=[*documents[:-1], " "])
    assert [result["index"] for result in whole.json()["results"]] == best
    assert few.json()["results"] == whole.json()["results"][:30]
    assert few.json()["usage"]["total_tokens"] == TOKENS * 1000
    assert (more.status_code, more.json()["error"]["param"]) == (400, "documents")
    assert (blank.status_code, blank.json()["error"]["param"]) == (400, "documents[999]")


async def test_rerank_names_what_it_cannot_do() -> None:
    """Neither or both lists, no text, another model, a bound of tokens that is not kept, none wanted."""
    refused: list[tuple[dict[str, Any], str]] = [
        ({"query": "q"}, "documents"),
        ({"query": "q", "documents": ["a"], "texts": ["a"]}, "documents"),
        ({"query": "q", "documents": ["a", {"title": "b"}]}, "documents[1]"),
        ({"query": "q", "documents": ["a", " "]}, "documents[1]"),
        ({"query": "q", "documents": []}, "documents"),
        ({"query": " ", "documents": ["a"]}, "query"),
        ({"query": "q", "documents": ["a"], "top_n": 0}, "top_n"),
        ({"query": "q", "documents": ["a"], "model": "rerank-v3.5"}, "model"),
        ({"query": "q", "documents": ["a"], "max_tokens_per_doc": 9}, "max_tokens_per_doc"),
    ]
    async with http_rig(logit_of=_by_length) as rig:
        for body, param in refused:
            reply = await _post(rig, "/v1/rerank", **body)
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
    async with http_rig() as rig:
        missing = await _post(rig, "/v1/rerank", query="q", documents=["a"])
    assert (missing.status_code, missing.json()["error"]["code"]) == (400, "RERANKER_MISSING")


async def test_models_lists_what_may_be_named() -> None:
    """The caller's collections, over all pages, and the models that endpoints take by name."""
    async with http_rig(logit_of=_by_length) as rig, rig.client() as client:
        listed = [model.id async for model in client.models.list()]
        for name in ("docs", "wiki@llm", "docs@auto", "hash"):
            assert (await client.models.retrieve(name)).id == name
        for name in ("nothing", "No Name", "a/b"):
            with pytest.raises(openai.NotFoundError):
                await client.models.retrieve(name)
        with pytest.raises(openai.BadRequestError):
            await client.models.retrieve("docs@nobody")
    collections = [name for name in listed if "@" not in name]
    assert collections == ["docs", "wiki", "hash", "scripted"]
    assert {"docs@auto", "wiki@llm"} <= set(listed)
