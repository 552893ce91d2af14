"""Serves `RetrievalService`: questions to passages, and to streamed answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

import grpc.aio
import structlog

from headrace.v1 import retrieval_pb2, retrieval_pb2_grpc
from retrieval.answers.operating import AnswerOperations
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.live import LiveSettings
from retrieval.server.calls import Call, current_call
from retrieval.server.coalescing import coalesced
from retrieval.server.convert.answers import event_to_pb, retrieved_to_pb
from retrieval.server.convert.caches import answer_key_from_pb, verdict_from_pb
from retrieval.server.convert.found import FoundMessages
from retrieval.server.convert.ledgers import ledger_to_pb
from retrieval.server.convert.requests import generate_request_from_pb, retrieve_request_from_pb
from retrieval.server.convert.routes import route_to_pb
from retrieval.types import Explained, GenerateEvent, GenerateRequest, Retrieved, RetrieveRequest

_log = structlog.get_logger("headrace")


class RequestPath(Protocol):
    """What serves a checked request: the pipeline."""

    async def retrieve(self, request: RetrieveRequest, clock: StageClock, deadline: Deadline) -> Retrieved:
        """Finds and assembles passages."""
        ...

    def generate(
        self, request: GenerateRequest, clock: StageClock, deadline: Deadline
    ) -> AsyncGenerator[GenerateEvent, None]:
        """Yields what was retrieved, the pieces of the answer, and how it ended."""
        ...

    async def explain(self, request: GenerateRequest, clock: StageClock, deadline: Deadline) -> Explained:
        """Returns the route that a question would take."""
        ...


class RetrievalService(retrieval_pb2_grpc.RetrievalServiceServicer):
    """Converts, calls, converts."""

    def __init__(self, path: RequestPath, answers: AnswerOperations, live: LiveSettings) -> None:
        self._path = path
        self._answers = answers
        self._live = live
        self._found = FoundMessages()

    async def Retrieve(  # noqa: N802 - the wire's name
        self, request: retrieval_pb2.RetrieveRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> retrieval_pb2.RetrieveResponse:
        """Finds the passages that answer a question."""
        call = current_call()
        asked = retrieve_request_from_pb(request, call.identity, call.request_id, self._live.current)
        _log_query(call, asked)
        retrieved = await self._path.retrieve(asked, call.clock, call.deadline)
        call.note(retrieved)
        return retrieved_to_pb(retrieved, self._found)

    async def Generate(  # noqa: N802
        self, request: retrieval_pb2.GenerateRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[retrieval_pb2.GenerateResponse]:
        """Retrieves, then streams the answer."""
        call = current_call()
        asked = generate_request_from_pb(request, call.identity, call.request_id, self._live.current)
        _log_query(call, asked.retrieve)
        async with aclosing(coalesced(self._path.generate(asked, call.clock, call.deadline))) as events:
            async for event in events:
                call.note(event)
                yield event_to_pb(event, self._found)

    async def ExplainRoute(  # noqa: N802
        self, request: retrieval_pb2.ExplainRouteRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> retrieval_pb2.ExplainRouteResponse:
        """Tells which backend would answer, and why."""
        call = current_call()
        asked = generate_request_from_pb(request.request, call.identity, call.request_id, self._live.current)
        _log_query(call, asked.retrieve)
        explained = await self._path.explain(asked, call.clock, call.deadline)
        call.ledger = explained.ledger
        return retrieval_pb2.ExplainRouteResponse(
            route=route_to_pb(explained.route),
            ledger=ledger_to_pb(explained.ledger),
            context_tokens=explained.context_tokens,
        )

    async def ReportAnswer(  # noqa: N802
        self, request: retrieval_pb2.ReportAnswerRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> retrieval_pb2.ReportAnswerResponse:
        """Takes a verdict on an answer."""
        key = answer_key_from_pb(current_call().identity.tenant, request.collection, request.key)
        verdict = verdict_from_pb(request.verdict)
        reported = await self._answers.report(key, verdict, request.request_id)
        return retrieval_pb2.ReportAnswerResponse(
            removed=reported.removed, learned=reported.learned, shared_available=reported.shared_available
        )


def _log_query(call: Call, asked: RetrieveRequest) -> None:
    _log.debug("query", request_id=call.request_id, collection=asked.collection, query=asked.query)
