"""The one interceptor: it brings every call of gRPC through the gate.

Streams are served through the writer of gRPC, not as generators: when the caller leaves, the cancellation then arises
inside our own coroutine, which closes the servicer's generator at once, and with it the work behind it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import Message

from retrieval.identity import Authenticator
from retrieval.server.calls import REQUEST_ID, Call
from retrieval.server.draining import Drain
from retrieval.server.gate import Gate
from retrieval.server.incoming import linger, parsed, parsed_stream, tolerant
from retrieval.server.limits import Limits
from retrieval.server.status import Failure
from retrieval.telemetry.metrics import Metrics

Behaviour: TypeAlias = Callable[[Any, Any], Any]
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Guard(grpc.aio.ServerInterceptor):
    """Serves every call of every service; `gate` is for other listeners of the same server."""

    def __init__(self, authenticator: Authenticator, limits: Limits, metrics: Metrics, drain: Drain) -> None:
        self.gate = Gate(authenticator, limits, metrics, drain)
        self._guarded: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Returns the method's handler with everything around it; an unknown method stays unknown."""
        method = handler_call_details.method
        if method not in self._guarded:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            self._guarded[method] = self._guard(handler, method)
        return self._guarded[method]

    def _guard(self, handler: Handler, method: str) -> Handler:
        behaviour, make = _parts(handler)

        async def serve(request: Any, context: Context) -> Any:
            return await self._serve(method, behaviour, request, context)

        return make(
            serve,
            request_deserializer=tolerant(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )

    async def _serve(self, method: str, behaviour: Behaviour, request: Any, context: Context) -> Any:
        metadata = context.invocation_metadata() or ()
        call = self.gate.begin(_label(method), method, metadata, context.time_remaining())
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))

        async def work() -> Any:
            with self.gate.admitted(method, call, metadata):
                return await _answer(call, behaviour, request, context)

        async def refuse(failure: Failure) -> Any:
            if hasattr(request, "__aiter__"):
                await linger(request)
            await context.abort(failure.code, failure.text, failure.trailing)

        def settled(error: Exception) -> grpc.StatusCode | None:
            if isinstance(error, grpc.aio.AbortError):
                return context.code()
            return grpc.StatusCode.CANCELLED if isinstance(error, grpc.aio.InternalError) else None  # left as we wrote

        return await self.gate.serve(method, call, work, refuse, settled)


async def _answer(call: Call, behaviour: Behaviour, request: Any, context: Context) -> Any:
    message = parsed_stream(request) if hasattr(request, "__aiter__") else parsed(request)
    _note_size(call, "request_bytes", request)
    result = behaviour(message, context)
    if not inspect.isasyncgen(result):
        reply = await result
        _note_size(call, "response_bytes", reply)
        return reply
    async with AsyncExitStack() as closing:
        closing.push_async_callback(result.aclose)
        async for event in result:
            _note_size(call, "response_bytes", event)
            await context.write(event)
    return None


def _label(method: str) -> str:
    return method.rpartition(".")[2]


def _parts(handler: Handler) -> tuple[Behaviour, Callable[..., Handler]]:
    if handler.request_streaming and handler.response_streaming:
        return handler.stream_stream, grpc.stream_stream_rpc_method_handler  # type: ignore[return-value]
    if handler.request_streaming:
        return handler.stream_unary, grpc.stream_unary_rpc_method_handler  # type: ignore[return-value]
    if handler.response_streaming:
        return handler.unary_stream, grpc.unary_stream_rpc_method_handler  # type: ignore[return-value]
    return handler.unary_unary, grpc.unary_unary_rpc_method_handler  # type: ignore[return-value]


def _note_size(call: Call, name: str, message: Any) -> None:
    if isinstance(message, Message):
        call.sizes[name] = call.sizes.get(name, 0) + message.ByteSize()
