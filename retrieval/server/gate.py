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

        `refuse` tells the caller of a failure. `settled` names the status of an exception that needs no telling, which
        is raised again: the caller knows already, or has left.
        """
        code = StatusCode.OK
        error: BaseException | None = None
        try:
            with self._metrics.in_flight(call.method):
                return await work()
        except asyncio.CancelledError as cancelled:
            if _task_is_cancelled():
                code = StatusCode.CANCELLED
                raise
            error, code = cancelled, StatusCode.UNAVAILABLE
            return await refuse(cancelled_inside(call.request_id))
        except Exception as raised:
            if (known := settled(raised)) is not None:
                code = known
                raise
            failure = failure_of(raised, call.request_id)
            error, code = (raised if failure.unexpected else None), failure.code
            return await refuse(failure)
        finally:
            self._end_soon(method, call, code, error)

    def _end_soon(self, method: str, call: Call, code: StatusCode, error: BaseException | None) -> None:
        """Writes the call down, after the reply is on its way where there is one: its caller need not wait for that."""
        duration_ns = call.clock.elapsed_ns()
        if code is StatusCode.OK:
            asyncio.get_running_loop().call_soon(self._end, method, call, code, error, duration_ns)
        else:
            self._end(method, call, code, error, duration_ns)

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
