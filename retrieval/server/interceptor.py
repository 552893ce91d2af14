"""The one interceptor: around each call it puts identity, role, deadline, errors as statuses, log line and metrics.

Streams are served through the writer of gRPC, not as generators: when the caller leaves, the cancellation then arises
inside our own coroutine, which closes the servicer's generator at once, and with it the work behind it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import Message

from retrieval.clock import StageClock
from retrieval.identity import DEFAULT_TENANT, Authenticator, require
from retrieval.scope import Identity
from retrieval.server.access import is_public, role_of
from retrieval.server.calls import REQUEST_ID, Call, enter_call, request_id_of
from retrieval.server.draining import Drain
from retrieval.server.incoming import linger, parsed, parsed_stream, tolerant
from retrieval.server.limits import Limits
from retrieval.server.status import Failure, cancelled_inside, failure_of
from retrieval.telemetry.metrics import Metrics
from retrieval.telemetry.requests import Ended, log_request

Behaviour: TypeAlias = Callable[[Any, Any], Any]
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_ANYONE = Identity(DEFAULT_TENANT, frozenset(), "")


class Guard(grpc.aio.ServerInterceptor):
    """Serves every call of every service."""

    def __init__(self, authenticator: Authenticator, limits: Limits, metrics: Metrics, drain: Drain) -> None:
        self._authenticator = authenticator
        self._limits = limits
        self._metrics = metrics
        self._drain = drain
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
        """Runs one call; the only place besides the scheduler that catches every exception."""
        call = self._begin(method, context)
        code = grpc.StatusCode.OK
        error: BaseException | None = None
        try:
            with self._metrics.in_flight(call.method):
                return await self._run(method, call, behaviour, request, context)
        except grpc.aio.AbortError:
            code = context.code()
            raise
        except grpc.aio.InternalError:  # the caller left while we wrote
            code = grpc.StatusCode.CANCELLED
            raise
        except asyncio.CancelledError as cancelled:
            if _task_is_cancelled():
                code = grpc.StatusCode.CANCELLED
                raise
            error, code = cancelled, grpc.StatusCode.UNAVAILABLE
            return await _refuse(request, context, cancelled_inside(call.request_id))
        except Exception as raised:
            failure = failure_of(raised, call.request_id)
            error, code = (raised if failure.unexpected else None), failure.code
            return await _refuse(request, context, failure)
        finally:
            self._end_soon(method, call, code, error)

    def _begin(self, method: str, context: Context) -> Call:
        request_id = request_id_of(context.invocation_metadata() or ())
        context.set_trailing_metadata(((REQUEST_ID, request_id),))
        deadline = self._limits.deadline(method, context.time_remaining())
        call = Call(method.rpartition(".")[2], request_id, StageClock(), deadline, _ANYONE)
        enter_call(call)
        return call

    async def _run(self, method: str, call: Call, behaviour: Behaviour, request: Any, context: Context) -> Any:
        if is_public(method):
            return await self._answer(call, behaviour, request, context)
        with self._drain.call():
            call.identity = self._authenticator.authenticate(context.invocation_metadata() or ())
            if role := role_of(method):
                require(call.identity, role)
            return await self._answer(call, behaviour, request, context)

    async def _answer(self, call: Call, behaviour: Behaviour, request: Any, context: Context) -> Any:
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

    def _end_soon(self, method: str, call: Call, code: grpc.StatusCode, error: BaseException | None) -> None:
        """Writes the call down, after the reply is on its way where there is one: its caller need not wait for that."""
        duration_ns = call.clock.elapsed_ns()
        if code is grpc.StatusCode.OK:
            asyncio.get_running_loop().call_soon(self._end, method, call, code, error, duration_ns)
        else:
            self._end(method, call, code, error, duration_ns)

    def _end(
        self, method: str, call: Call, code: grpc.StatusCode, error: BaseException | None, duration_ns: int
    ) -> None:
        self._metrics.request(call.method, code.name, duration_ns / 1e9)
        if call.ledger is not None:
            self._metrics.ledger(call.ledger)
        if call.reuse is not None:
            self._metrics.answer(call.reuse)
        if not is_public(method) or error is not None:
            log_request(
                Ended(
                    call.request_id,
                    call.method,
                    None if call.identity is _ANYONE else call.identity,
                    code.name,
                    duration_ns,
                    call.sizes,
                    call.ledger,
                    error,
                    call.reuse,
                )
            )


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


def _task_is_cancelled() -> bool:
    """Tells a cancellation of this call from one that came out of what it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _refuse(request: Any, context: Context, failure: Failure) -> Any:
    if hasattr(request, "__aiter__"):
        await linger(request)
    await context.abort(failure.code, failure.text, failure.trailing)
