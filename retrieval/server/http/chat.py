"""`POST /v1/chat/completions`: a question to a collection, answered as OpenAI's API answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from retrieval.live import LiveSettings
from retrieval.server.calls import Call
from retrieval.server.coalescing import coalesced
from retrieval.server.convert.requests import generate_request_from_pb
from retrieval.server.http.bodies import LONG_BYTES, parsed
from retrieval.server.http.chat_body import ChatBody, check_chat
from retrieval.server.http.chat_reply import DONE, NOTHING, Chunks, Whole, extension
from retrieval.server.http.chat_request import chat_to_pb
from retrieval.server.http.endpoint import Asked
from retrieval.server.http.reply import Reply
from retrieval.server.http.timing import server_timing
from retrieval.server.services.retrieval import RequestPath
from retrieval.speech import Delta
from retrieval.types import Completed, GenerateEvent, GenerateRequest, Retrieved

_log = structlog.get_logger("headrace")


class Chat:
    """Converts, calls, converts."""

    def __init__(self, path: RequestPath, live: LiveSettings, keepalive_s: float) -> None:
        self._path = path
        self._live = live
        self._keepalive_s = keepalive_s

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        """Answers one request."""
        body = await parsed(ChatBody, asked.body)
        if len(asked.body) <= LONG_BYTES:
            request = self._request(asked.call, body)
        else:
            request = await asyncio.to_thread(self._request, asked.call, body)
        _log.debug(
            "query",
            request_id=asked.call.request_id,
            collection=request.retrieve.collection,
            query=request.retrieve.query,
        )
        events = self._path.generate(request, asked.call.clock, asked.call.deadline)
        if body.stream:
            async with aclosing(coalesced(events)) as ahead, reply.kept_alive(self._keepalive_s):
                await _stream(ahead, asked.call, body, reply)
            await reply.end()
        else:
            async with aclosing(events):
                document = await _whole(events, asked.call, body, reply)
            await reply.json(document)

    def _request(self, call: Call, body: ChatBody) -> GenerateRequest:
        check_chat(body)
        return generate_request_from_pb(chat_to_pb(body), call.identity, call.request_id, self._live.current)


async def _stream(events: AsyncGenerator[GenerateEvent, None], call: Call, body: ChatBody, reply: Reply) -> None:
    """Sends the chunks; nothing before the first of them, so that a failure until then has a status of its own."""
    chunks, retrieved = Chunks(call.request_id, body.model), NOTHING
    async for event in events:
        if isinstance(event, Delta):
            await reply.event(chunks.delta(event))
            continue
        call.note(event)
        if isinstance(event, Retrieved):
            reply.timing, retrieved = server_timing(event.ledger), event
        else:
            last = chunks.end(event, extension(call.request_id, event, retrieved))
            usage = chunks.usage(event.usage) if body.wants_usage else b""
            await reply.event(last + usage + DONE)


async def _whole(events: AsyncGenerator[GenerateEvent, None], call: Call, body: ChatBody, reply: Reply) -> object:
    whole, retrieved, completed = Whole(), NOTHING, None
    async for event in events:
        if isinstance(event, Delta):
            whole.add(event)
            continue
        call.note(event)
        if isinstance(event, Retrieved):
            retrieved = event
        else:
            completed = event
    assert isinstance(completed, Completed)  # an answer that ends otherwise has raised
    reply.timing = server_timing(completed.ledger)
    return whole.document(call.request_id, body.model, completed, extension(call.request_id, completed, retrieved))
