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
    """What a caller sees of an error, whichever listener he came by."""

    code: StatusCode
    reason: str
    text: str
    facts: Mapping[str, str]
    request_id: str
    retry_after_ms: float | None  # None where waiting does not help, or nothing is known of it

    @property
    def unexpected(self) -> bool:
        """Whether it needs a look at our log."""
        return self.code is StatusCode.INTERNAL

    @property
    def trailing(self) -> tuple[tuple[str, str | bytes], ...]:
        """The metadata that carry it over gRPC."""
        metadata = {**self.facts, "request_id": self.request_id}
        details = [_packed(ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=metadata))]
        if self.retry_after_ms is not None:
            delay = Duration()
            delay.FromMilliseconds(int(self.retry_after_ms))
            details.append(_packed(RetryInfo(retry_delay=delay)))
        status = Status(code=self.code.value[0], message=self.text, details=details)
        return ((REQUEST_ID, self.request_id), (_DETAILS, status.SerializeToString()))


def failure_of(error: BaseException, request_id: str) -> Failure:
    """Returns what the caller sees of an error; nothing of an unexpected one but the request's id."""
    row = row_for(type(error))
    if row is None:
        text = f"an internal error occurred; its cause is in the server's log under request {request_id}"
        return Failure(StatusCode.INTERNAL, "INTERNAL", text, {}, request_id, None)
    facts = {name: value[:_FACT_CHARS] for name, value in row.facts(error).items()}
    text = (row.text or str(error))[:_FACT_CHARS]
    return Failure(row.code, row.reason, text, facts, request_id, getattr(error, "retry_after_ms", None))


def cancelled_inside(request_id: str) -> Failure:
    """Returns the status for work that was cancelled by something else than the caller."""
    text = f"the work was cancelled inside the server; send request {request_id} again"
    return Failure(StatusCode.UNAVAILABLE, "CANCELLED_INSIDE", text, {}, request_id, None)


def _packed(message: ErrorInfo | RetryInfo) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(message)
    return packed
