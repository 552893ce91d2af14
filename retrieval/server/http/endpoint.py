"""One endpoint: it brings each request through the gate, reads its body, and ends its work when the caller leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from grpc import StatusCode
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from retrieval.clock import Stage
from retrieval.deadline import Deadline
from retrieval.errors import InvalidRequest, ShuttingDown
from retrieval.server.calls import Call
from retrieval.server.gate import Gate
from retrieval.server.http.errors import BodyTooLarge, MediaTypeUnknown
from retrieval.server.http.reply import Reply
from retrieval.server.status import failure_of

TIMEOUT_MS = "x-request-timeout-ms"
_UNREAD_S = 1.0  # the request path ends by its deadline; what takes longer waits for a caller who does not read
Metadata: TypeAlias = Sequence[tuple[str, str]]


class CallerLeft(Exception):
    """The caller has closed the connection before the reply was whole, or has stopped reading it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks of its endpoint."""

    call: Call
    body: bytes
    path: Mapping[str, str]  # parameters in the path


Answering: TypeAlias = Callable[[Asked, Reply], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of call an endpoint serves."""

    label: str  # in the log and the metrics
    method: str  # of gRPC, whose role it needs and whose time it may take
    names: Mapping[str, str] = field(default_factory=dict)  # fields of ours by the endpoint's own, for errors


@dataclass(frozen=True, slots=True)
class Entrance:
    """What all endpoints of a listener share."""

    gate: Gate
    max_body_bytes: int
    check: Callable[[Headers], None]  # raises for a request that must not come in
    running: set[asyncio.Task[None]] = field(default_factory=set)


class Endpoint:
    """An ASGI application for one kind of call."""

    def __init__(self, entrance: Entrance, kind: Kind, answer: Answering) -> None:
        self._entrance = entrance
        self._kind = kind
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request; the work runs in a task of its own, which ends as soon as the caller leaves."""
        headers = Headers(scope=scope)
        metadata = [(name, value) for name, value in headers.items()]
        asked_s = _timeout_s(headers.get(TIMEOUT_MS))
        call = self._entrance.gate.begin(self._kind.label, self._kind.method, metadata, asked_s)
        reply = Reply(send, call, self._kind.names)
        work = asyncio.create_task(self._serve(scope, receive, call, reply))
        self._entrance.running.add(work)
        try:
            await asyncio.wait([work])
        finally:
            self._entrance.running.discard(work)
            work.cancel()
            await asyncio.wait([work])
        if work.cancelled():  # nobody but the listener cancels it, when its time is up
            await reply.refuse(failure_of(ShuttingDown(), call.request_id))
        elif not isinstance(work.exception(), CallerLeft):
            work.result()

    async def _serve(self, scope: Scope, receive: Receive, call: Call, reply: Reply) -> None:
        headers, method = Headers(scope=scope), self._kind.method

        async def work() -> None:
            self._entrance.check(headers)
            _check_timeout(headers.get(TIMEOUT_MS))
            with self._entrance.gate.admitted(method, call, list(headers.items())):
                async with call.deadline.bound(Stage.ADMIT):
                    body = await self._body(scope, receive, headers)
                call.sizes["request_bytes"] = len(body)
                asked = Asked(call, body, scope.get("path_params", {}))
                await _while_there(receive, self._answer(asked, reply), call.deadline)

        await self._entrance.gate.serve(method, call, work, reply.refuse, _settled)

    async def _body(self, scope: Scope, receive: Receive, headers: Headers) -> bytes:
        if scope["method"] not in ("POST", "PUT"):
            return b""
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise MediaTypeUnknown
        limit = self._entrance.max_body_bytes
        said = headers.get("content-length", "0")
        if said.isdecimal() and int(said) > limit:
            raise BodyTooLarge(limit)
        return await _read(receive, limit)


async def _read(receive: Receive, limit_bytes: int) -> bytes:
    pieces, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerLeft
        piece = message.get("body", b"")
        pieces.append(piece)
        size, more = size + len(piece), message.get("more_body", False)
        if size > limit_bytes:
            raise BodyTooLarge(limit_bytes)
    return b"".join(pieces)


async def _while_there(receive: Receive, work: Awaitable[None], deadline: Deadline) -> None:
    """Awaits the work, and cancels it when the caller leaves, or does not read on past the deadline.

    Raises:
        CallerLeft: the work was cancelled.
    """
    serving, leaving = asyncio.ensure_future(work), asyncio.create_task(_left(receive))
    longest_s = max(0.0, deadline.remaining_s()) + _UNREAD_S
    try:
        await asyncio.wait([serving, leaving], return_when=asyncio.FIRST_COMPLETED, timeout=longest_s)
        served = serving.done()
    finally:
        serving.cancel()
        leaving.cancel()
        await asyncio.wait([serving, leaving])
    if not served:
        raise CallerLeft
    serving.result()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _settled(error: Exception) -> StatusCode | None:
    return StatusCode.CANCELLED if isinstance(error, CallerLeft) else None


def _timeout_s(text: str | None) -> float | None:
    return int(text) / 1e3 if text is not None and text.isdecimal() and len(text) < 10 else None


def _check_timeout(text: str | None) -> None:
    if text is not None and not _timeout_s(text):
        bound = "a whole number of milliseconds, 1 or more"
        raise InvalidRequest(TIMEOUT_MS, bound, f"the header {TIMEOUT_MS} must be {bound}")
