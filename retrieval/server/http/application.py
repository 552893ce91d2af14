"""The ASGI application: which path is which endpoint, with whose role, under which name in the log."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grpc import StatusCode
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from retrieval.live import LiveSettings
from retrieval.server.access import HEALTH
from retrieval.server.convert.models import ServedModel
from retrieval.server.gate import Gate
from retrieval.server.http.chat import Chat
from retrieval.server.http.chat_request import CHAT_NAMES
from retrieval.server.http.embeddings import EMBEDDING_NAMES, Embeddings
from retrieval.server.http.endpoint import Answering, Asked, Endpoint, Entrance, Kind
from retrieval.server.http.errors import HostForbidden
from retrieval.server.http.failures import error_body
from retrieval.server.http.models import Models
from retrieval.server.http.reply import Reply
from retrieval.server.http.rerank import RERANK_NAMES, Rerank
from retrieval.server.http.servicers import Collections, Encoders
from retrieval.server.services.retrieval import RequestPath
from retrieval.server.status import Failure

_RETRIEVAL, _ENCODING = "/headrace.v1.RetrievalService", "/headrace.v1.EncodingService"
_INDEX = "/headrace.v1.IndexService"
_LOOPBACK_NAMES = ("", "localhost")  # HTTP/1.0 need not name any


@dataclass(frozen=True, slots=True)
class Parts:
    """What answers behind the endpoints."""

    path: RequestPath
    gate: Gate
    encoders: Encoders
    collections: Collections
    models: Sequence[ServedModel]
    backends: Sequence[str]
    healthy: Callable[[], bool]
    live: LiveSettings


def endpoints(parts: Parts, entrance: Entrance, keepalive_s: float) -> list[Route]:
    """Returns all routes."""
    dense = next(model for model in parts.models if model.role == "dense")
    cross = next((model.model_id for model in parts.models if model.role == "cross_encoder"), "")
    chat = Chat(parts.path, parts.live, keepalive_s)
    embeddings = Embeddings(parts.encoders, dense.model_id, dense.dim)
    rerank = Rerank(parts.encoders, cross)
    models = Models(parts.collections, parts.models, parts.backends)

    def route(verb: str, path: str, method: str, answer: Answering, **names: str) -> Route:
        label = path.partition(":")[0] + ("}" if ":" in path else "")
        return Route(path, Endpoint(entrance, Kind(label, method, names), answer), methods=[verb])

    return [
        route("POST", "/v1/chat/completions", f"{_RETRIEVAL}/Generate", chat, **CHAT_NAMES),
        route("POST", "/v1/embeddings", f"{_ENCODING}/Embed", embeddings, **EMBEDDING_NAMES),
        *(
            route("POST", path, f"{_ENCODING}/Rerank", rerank, **RERANK_NAMES)
            for path in ("/v1/rerank", "/v2/rerank", "/rerank")
        ),
        route("GET", "/v1/models", f"{_INDEX}/ListCollections", models.list),
        route("GET", "/v1/models/{name:path}", f"{_INDEX}/GetCollection", models.get, collection="model"),
        route("GET", "/health", f"{HEALTH}Check", _Health(parts.healthy)),
    ]


def application(routes: Sequence[Route]) -> Starlette:
    """Returns the application; paths and verbs that it does not know are told of as errors are everywhere."""
    app = Starlette(routes=routes, exception_handlers={HTTPException: _unknown})
    # A redirection would lead to wherever the host header says.
    app.router.redirect_slashes = False
    return app


def check_host(headers: Headers, *, open_to_all: bool) -> None:
    """Lets a request in that names this machine, or that a key protects.

    A page in a browser may reach a service on loopback by a name of its own that it has made to point here; its
    requests carry that name.

    Raises:
        HostForbidden: it names another machine, and no key is asked for.
    """
    if open_to_all and not _is_loopback(headers.get("host", "")):
        raise HostForbidden


class _Health:
    def __init__(self, healthy: Callable[[], bool]) -> None:
        self._healthy = healthy

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        serving = self._healthy()
        await reply.json({"status": "serving" if serving else "not_serving"}, 200 if serving else 503)


def _is_loopback(host: str) -> bool:
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() in _LOOPBACK_NAMES


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = f"there is no {request.method} {request.url.path[:200]} here; see the documentation for the endpoints"
    code = StatusCode.NOT_FOUND if error.status_code == 404 else StatusCode.INVALID_ARGUMENT
    failure = Failure(code, "UNKNOWN_ENDPOINT", text, {}, uuid.uuid4().hex, None)
    return JSONResponse(error_body(failure, {}), error.status_code, error.headers)
