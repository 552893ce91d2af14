"""`POST /v1/embeddings`: texts to vectors, as OpenAI's API has it; the dense encoder by itself."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import JsonValue

from encoders.errors import EncodingFailed
from headrace.v1 import encoding_pb2
from retrieval.errors import InvalidRequest
from retrieval.server.http.bodies import Body, Count, parsed
from retrieval.server.http.endpoint import Asked
from retrieval.server.http.reply import Reply
from retrieval.server.http.servicers import Encoders

DEFAULT_MODEL = "default"
EMBEDDING_NAMES: Mapping[str, str] = {"texts": "input"}
_KINDS = {"query": encoding_pb2.TEXT_KIND_QUERY, "passage": encoding_pb2.TEXT_KIND_PASSAGE}


class EmbeddingBody(Body):
    """Texts whose vectors are wanted."""

    model: str = DEFAULT_MODEL
    input: JsonValue
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Count | None = None
    user: str | None = None
    input_type: Literal["query", "passage"] = "passage"  # ours; matters to models that encode the two in two ways
    truncate: bool = False  # ours; whether a text above the model's limit is cut instead of refused


class Embeddings:
    """Converts, calls, converts."""

    def __init__(self, encoders: Encoders, model: str, dim: int) -> None:
        self._encoders = encoders
        self._model = model
        self._dim = dim

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        """Answers one request."""
        body = await parsed(EmbeddingBody, asked.body)
        check_model(body.model, self._model)
        if body.dimensions not in (None, self._dim):
            text = f"dimensions is {body.dimensions}; the vectors of this model have {self._dim}"
            raise InvalidRequest("dimensions", str(self._dim), text)
        request = encoding_pb2.EmbedRequest(
            texts=_texts(body.input), kind=_KINDS[body.input_type], truncate=body.truncate
        )
        embedded = await self._encoders.Embed(request, None)
        if any(embedding.error for embedding in embedded.embeddings):
            raise EncodingFailed(self._model)
        await reply.json(await asyncio.to_thread(_document, embedded, body.encoding_format == "base64"))


def check_model(asked: str, served: str) -> None:
    """Lets the name pass when it is the model's, or says that any will do.

    Raises:
        InvalidRequest: it is another one's, whose figures would mean something else.
    """
    if asked not in (served, DEFAULT_MODEL):
        bound = f"{served} or {DEFAULT_MODEL}"
        raise InvalidRequest("model", bound, f"model {asked!r} is not served here; use {bound}")


def _texts(value: JsonValue) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        texts = [each for each in value if isinstance(each, str)]
        if len(texts) == len(value):
            return texts
    text = "input must be a text or a list of texts; tokens are counted differently here, so send the text itself"
    raise InvalidRequest("input", "a text or a list of texts", text)


def _document(embedded: encoding_pb2.EmbedResponse, as_base64: bool) -> dict[str, object]:
    tokens = sum(embedding.token_count for embedding in embedded.embeddings)
    entries = [
        {"object": "embedding", "index": place, "embedding": _vector(embedding, as_base64)}
        for place, embedding in enumerate(embedded.embeddings)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": entries, "model": embedded.model, "usage": usage}


def _vector(embedding: encoding_pb2.Embedding, as_base64: bool) -> object:
    if as_base64:
        return base64.b64encode(np.asarray(embedding.vector, dtype="<f4").tobytes()).decode()
    return list(embedding.vector)
