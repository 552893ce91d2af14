"""`POST /v1/rerank`: passages scored against a query, in the shapes that clients of Cohere, Jina and TEI read.

`texts` in the body asks in TEI's shape, `documents` in that of the other two, which differ in what they may hold only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from headrace.v1 import encoding_pb2
from retrieval.errors import InvalidRequest
from retrieval.server.convert.texts import MAX_TEXTS, checked_texts
from retrieval.server.http.bodies import Body, Count, parsed, refuse_unhonoured
from retrieval.server.http.embeddings import DEFAULT_MODEL, check_model
from retrieval.server.http.endpoint import Asked
from retrieval.server.http.reply import Reply
from retrieval.server.http.servicers import Encoders
from retrieval.server.services.encoding import MAX_ENCODED_BYTES

MAX_PASSAGES = 1000
"""In one request, as with Cohere."""

RERANK_NAMES: Mapping[str, str] = {"passages": "documents", "top_k": "top_n"}
_UNHONOURED: Mapping[str, Sequence[JsonValue]] = {
    "max_tokens_per_doc": (),
    "max_chunks_per_doc": (),
    "rank_fields": (),
    "truncate": (True,),
    "truncation_direction": ("right", "Right"),
}


class RerankBody(Body):
    """Passages to be scored; one of `documents` and `texts`."""

    query: str
    documents: list[JsonValue] | None = None  # texts, or objects with a `text`
    texts: list[str] | None = None
    model: str = DEFAULT_MODEL
    top_n: Count | None = None
    return_documents: bool | None = None
    return_text: bool = False
    raw_scores: bool = False  # TEI's: logits instead of values between 0 and 1
    # These have to be at their defaults:
    max_tokens_per_doc: JsonValue = None
    max_chunks_per_doc: JsonValue = None
    rank_fields: JsonValue = None
    truncate: JsonValue = None
    truncation_direction: JsonValue = None


class Rerank:
    """Converts, calls, converts; `model` is the cross-encoder's name, empty when there is none."""

    def __init__(self, encoders: Encoders, model: str) -> None:
        self._encoders = encoders
        self._model = model

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        """Answers one request."""
        body = await parsed(RerankBody, asked.body)
        refuse_unhonoured(body, _UNHONOURED)
        if self._model:
            check_model(body.model, self._model)
        passages = _passages(body)
        ranked = await self._ranked(body, passages)
        if body.texts is not None:
            await reply.json([_tei(place, passages, body) for place in ranked.results])
        else:
            await reply.json(_document(ranked, passages, body, asked.call.request_id))

    async def _ranked(self, body: RerankBody, passages: Sequence[str]) -> encoding_pb2.RerankResponse:
        """Ranks all passages, in as many calls as it takes: what a passage scores does not depend on the others."""
        if len(passages) > MAX_TEXTS:
            checked_texts(passages, "texts" if body.texts else "documents", MAX_ENCODED_BYTES, most=MAX_PASSAGES)
        results: list[encoding_pb2.RankedPassage] = []
        model, tokens = "", 0
        for first in range(0, max(1, len(passages)), MAX_TEXTS):
            some = passages[first : first + MAX_TEXTS]
            request = encoding_pb2.RerankRequest(query=body.query, passages=some, top_k=_keep(body, some))
            ranked = await self._encoders.Rerank(request, None)
            for place in ranked.results:
                place.index += first
            results += ranked.results
            model, tokens = ranked.model, tokens + ranked.tokens
        results.sort(key=lambda place: -place.logit)  # among equals the order stays that of the passages
        return encoding_pb2.RerankResponse(results=results[: _keep(body, passages)], model=model, tokens=tokens)


def _passages(body: RerankBody) -> list[str]:
    if (body.documents is None) == (body.texts is None):
        text = "send the passages as documents (Cohere, Jina) or as texts (TEI)"
        raise InvalidRequest("documents", "one of documents and texts", text)
    if body.texts is not None:
        return body.texts
    return [_text(each, f"documents[{place}]") for place, each in enumerate(body.documents or ())]


def _text(document: JsonValue, field: str) -> str:
    text = document.get("text") if isinstance(document, dict) else document
    if not isinstance(text, str):
        raise InvalidRequest(field, "a text, or an object with a text", f"{field} holds no text; send a text")
    return text


def _keep(body: RerankBody, passages: Sequence[str]) -> int | None:
    """Returns how many results are wanted; more than there are passages means all of them."""
    return None if body.top_n is None else min(body.top_n, len(passages))


def _tei(ranked: encoding_pb2.RankedPassage, passages: Sequence[str], body: RerankBody) -> dict[str, object]:
    said: dict[str, object] = {"index": ranked.index, "score": ranked.logit if body.raw_scores else ranked.score}
    return said | ({"text": passages[ranked.index]} if body.return_text else {})


def _document(
    ranked: encoding_pb2.RerankResponse, passages: Sequence[str], body: RerankBody, request_id: str
) -> dict[str, object]:
    results = []
    for place in ranked.results:
        result: dict[str, object] = {"index": place.index, "relevance_score": place.score}
        if body.return_documents:
            result["document"] = {"text": passages[place.index]}
        results.append(result)
    return {
        "id": f"rerank-{request_id}",
        "model": ranked.model,
        "results": results,
        "usage": {"prompt_tokens": ranked.tokens, "total_tokens": ranked.tokens},
        "meta": {"api_version": {"version": "2"}, "tokens": {"input_tokens": ranked.tokens}},
    }
