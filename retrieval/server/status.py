"""Errors as statuses with details: `ErrorInfo` always, `RetryInfo` where waiting helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from retrieval.server.calls import REQUEST_ID
from retrieval.server.error_table import row_for

DOMAIN = "headrace"
_DETAILS = "grpc-status-details-bin"
_FACT_CHARS = 1000  # trailing metadata has a bound of its own


@dataclass(frozen=True, slots=True)
class Failure:
    """A status as it goes to the caller; `unexpected` ones need a look at our log."""

    code: StatusCode
    text: str
    trailing: tuple[tuple[str, str | bytes], ...]
    unexpected: bool


def failure_of(error: BaseException, request_id: str) -> Failure:
    """Returns what the caller sees of an error; nothing of an unexpected one but the request's id."""
    row = row_for(type(error))
    if row is None:
        text = f"an internal error occurred; its cause is in the server's log under request {request_id}"
        return _failure(StatusCode.INTERNAL, "INTERNAL", text, {}, request_id)
    retry_after_ms = getattr(error, "retry_after_ms", None)
    return _failure(row.code, row.reason, row.text or str(error), row.facts(error), request_id, retry_after_ms)


def cancelled_inside(request_id: str) -> Failure:
    """Returns the status for work that was cancelled by something else than the caller."""
    text = f"the work was cancelled inside the server; send request {request_id} again"
    return _failure(StatusCode.UNAVAILABLE, "CANCELLED_INSIDE", text, {}, request_id)


def _failure(
    code: StatusCode,
    reason: str,
    text: str,
    facts: Mapping[str, str],
    request_id: str,
    retry_after_ms: float | None = None,
) -> Failure:
    metadata = {name: value[:_FACT_CHARS] for name, value in facts.items()}
    info = ErrorInfo(reason=reason, domain=DOMAIN, metadata={**metadata, "request_id": request_id})
    details = [_packed(info)]
    if retry_after_ms is not None:
        delay = Duration()
        delay.FromMilliseconds(int(retry_after_ms))
        details.append(_packed(RetryInfo(retry_delay=delay)))
    text = text[:_FACT_CHARS]
    status = Status(code=code.value[0], message=text, details=details)
    trailing = ((REQUEST_ID, request_id), (_DETAILS, status.SerializeToString()))
    return Failure(code, text, trailing, unexpected=code is StatusCode.INTERNAL)


def _packed(message: ErrorInfo | RetryInfo) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(message)
    return packed
