"""How a failure looks to a caller over HTTP: in the form of OpenAI's API, which the clients of all endpoints read."""

from __future__ import annotations

import math
from collections.abc import Mapping

from grpc import StatusCode

from retrieval.server.status import Failure

_STATUSES: Mapping[StatusCode, int] = {
    StatusCode.INVALID_ARGUMENT: 400,
    StatusCode.FAILED_PRECONDITION: 400,  # not 409, which OpenAI's clients send again by themselves
    StatusCode.UNAUTHENTICATED: 401,
    StatusCode.PERMISSION_DENIED: 403,
    StatusCode.NOT_FOUND: 404,
    StatusCode.ALREADY_EXISTS: 409,
    StatusCode.RESOURCE_EXHAUSTED: 429,
    StatusCode.UNAVAILABLE: 503,
    StatusCode.DEADLINE_EXCEEDED: 504,
}
_REASON_STATUSES: Mapping[str, int] = {"BODY_TOO_LARGE": 413, "MEDIA_TYPE_UNKNOWN": 415}
_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    504: "timeout_error",
}
_RETRY_MS = 1000.0  # where a server that is going away knows no better


def http_status(failure: Failure) -> int:
    """Returns the status of HTTP for a failure."""
    return _REASON_STATUSES.get(failure.reason) or _STATUSES.get(failure.code, 500)


def error_body(failure: Failure, names: Mapping[str, str], *, partial: bool = False) -> dict[str, object]:
    """Returns a failure as OpenAI's API tells it; `names` are fields of ours by the endpoint's own."""
    status = http_status(failure)
    field = failure.facts.get("field")
    error: dict[str, object] = {
        "message": failure.text,
        "type": _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error"),
        "param": field and _renamed(field, names),
        "code": failure.reason,
        "request_id": failure.request_id,
    }
    if rest := {name: value for name, value in failure.facts.items() if name != "field"}:
        error["metadata"] = rest
    if partial:
        error["partial"] = True
    return {"error": error}


def retry_headers(failure: Failure) -> list[tuple[str, str]]:
    """Returns when to come back, where that helps: in seconds, and in milliseconds for OpenAI's clients."""
    wait_ms = failure.retry_after_ms
    if wait_ms is None and failure.reason == "SHUTTING_DOWN":
        wait_ms = _RETRY_MS
    if wait_ms is None:
        return []
    return [("retry-after", str(math.ceil(wait_ms / 1e3))), ("retry-after-ms", str(math.ceil(wait_ms)))]


def _renamed(field: str, names: Mapping[str, str]) -> str:
    """Returns the field as the endpoint calls it; a name that ends with `*` covers all that goes on so."""
    for ours, theirs in names.items():
        if ours.endswith("*") and field.startswith(ours[:-1]):
            return theirs
        if field == ours or field.startswith((f"{ours}.", f"{ours}[")):
            return theirs + field[len(ours) :]
    return field
