"""What every call gets around it, whichever listener it came by: identity, role, deadline, log line and metrics.

A listener brings the work, and says how a failure reaches its callers; the rest is the same for all, in one place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from grpc import StatusCode

from retrieval.clock import StageClock
from retrieval.errors import ShuttingDown
from retrieval.identity import DEFAULT_TENANT, Authenticator, require
from retrieval.scope import Identity
from retrieval.server.access import is_public, role_of
from retrieval.server.calls import Call, enter_call, request_id_of
from retrieval.server.draining import Drain
from retrieval.server.limits import Limits
from retrieval.server.status import Failure, cancelled_inside, failure_of
from retrieval.telemetry.metrics import Metrics
from retrieval.telemetry.requests import Ended, log_request

T = TypeVar("T")
_ANYONE = Identity(DEFAULT_TENANT, frozenset(), "")


class Gate:
    """Lets calls in, and writes them down when they end."""

    def __init__(self, authenticator: Authenticator, limits: Limits, metrics: Metrics, drain: Drain) -> None:
        self._authenticator = authenticator
        self._limits = limits
        self._metrics = metrics
        self._drain = drain

    def begin(
        self, label: str, method: str, metadata: Iterable[tuple[str, str | bytes]], remaining_s: float | None
    ) -> Call:
        """Returns a new call, the current one of this task.

        `label` names it in the log and the metrics; `method`, of gRPC, says its role and the longest that it may take.
        """
        deadline = self._limits.deadline(method, remaining_s)
        call = Call(label, request_id_of(metadata), StageClock(), deadline, _ANYONE)
        enter_call(call)
        return call

    @contextmanager
    def admitted(self, method: str, call: Call, metadata: Iterable[tuple[str, str | bytes]]) -> Iterator[None]:
        """Lets the call in while the body runs, as whom its credential says.

        Raises:
            ShuttingDown: a stop was asked for.
            Unauthenticated, PermissionDenied: the credential does not open the method.
        """
        if is_public(method):
            yield
            return
        with self._drain.call():
            call.identity = self._authenticator.authenticate(metadata)
            if role := role_of(method):
                require(call.identity, role)
            yield

    async def serve(
        self,
        method: str,
        call: Call,
        work: Callable[[], Awaitable[T]],
        refuse: Callable[[Failure], Awaitable[T]],
        settled: Callable[[Exception], StatusCode | None],
    ) -> T:
        """Runs one call; the only place besides the scheduler that catches every exception.

        `refuse` tells the caller of a failure, after it has been written down. `settled` names the status of an
        exception that needs no telling, which is raised again: the caller knows already, or has left.
        """
        error: BaseException | None
        try:
            with self._metrics.in_flight(call.method):
                result = await work()
        except asyncio.CancelledError as cancelled:
            if self._drain.over and (task := asyncio.current_task()) is not None:
                task.uncancel()  # it was the drain that cancelled, and the caller is there to be told
                failure, error = failure_of(ShuttingDown(), call.request_id), None
            elif _task_is_cancelled():
                self._end(method, call, StatusCode.CANCELLED, None, call.clock.elapsed_ns())
                raise
            else:
                failure, error = cancelled_inside(call.request_id), cancelled
        except Exception as raised:
            if (code := settled(raised)) is not None:
                self._end(method, call, code, None, call.clock.elapsed_ns())
                raise
            failure = failure_of(raised, call.request_id)
            error = raised if failure.unexpected else None
        else:
            # The reply is on its way, and its caller need not wait for this.
            duration_ns = call.clock.elapsed_ns()
            asyncio.get_running_loop().call_soon(self._end, method, call, StatusCode.OK, None, duration_ns)
            return result
        self._end(method, call, failure.code, error, call.clock.elapsed_ns())
        return await refuse(failure)

    def _end(self, method: str, call: Call, code: StatusCode, error: BaseException | None, duration_ns: int) -> None:
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


def _task_is_cancelled() -> bool:
    """Tells a cancellation of this call from one that came out of what it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
