"""Every error of ours has a status; nothing else says anything to a caller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from encoders.errors import EncoderError, InputTooLong, SchedulerFull
from indexers.errors import IndexerError, IndexUnavailable, TypeMismatch
from rerank.errors import RerankError
from retrieval.errors import BackendUnavailable, InvalidRequest, Overloaded, RetrievalError
from retrieval.server.error_table import ROWS, row_for
from retrieval.server.status import Failure, failure_of

TREES = (EncoderError, IndexerError, RerankError, RetrievalError)


def _subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def _details(failure: Failure) -> tuple[ErrorInfo, RetryInfo | None]:
    [data] = [value for name, value in failure.trailing if name == "grpc-status-details-bin"]
    assert isinstance(data, bytes)
    status = Status.FromString(data)
    info, retry = ErrorInfo(), RetryInfo()
    assert status.details[0].Unpack(info)
    found = any(detail.Unpack(retry) for detail in status.details[1:])
    return info, retry if found else None


@pytest.mark.parametrize("kind", [kind for tree in TREES for kind in _subclasses(tree)], ids=lambda kind: kind.__name__)
def test_error_table_maps_every_error(kind: type[Exception]) -> None:
    """Every class below the roots has a row of its own or its parent's."""
    if kind.__module__.split(".")[0] != "tests":
        assert row_for(kind) is not None


def test_error_table_roots_are_unmapped() -> None:
    """A new error without a row is found by the test above, since no root has one."""
    assert not any(tree in ROWS for tree in TREES)


def test_error_table_reasons_are_upper_snake() -> None:
    """Reasons are words that programs compare."""
    for row in ROWS.values():
        assert row.reason.isupper()
        assert row.reason.replace("_", "").isalpha()


def test_error_table_overload_is_resource_exhausted() -> None:
    """Overload is never UNAVAILABLE, which clients retry by themselves, and says when to come back."""
    for error in (Overloaded("requests", 4, 250.0), SchedulerFull(9, 9, 250.0)):
        failure = failure_of(error, "r")
        _, retry = _details(failure)
        assert failure.code is StatusCode.RESOURCE_EXHAUSTED
        assert retry is not None
        assert retry.retry_delay.ToMilliseconds() == 250


def test_failure_names_field_and_bound() -> None:
    """An error of the caller says what was wrong and what is allowed."""
    info, retry = _details(failure_of(InvalidRequest("top_k", "1..200", "top_k is 0"), "abc"))
    assert (info.domain, info.reason, retry) == ("headrace", "INVALID_REQUEST", None)
    assert dict(info.metadata) == {"field": "top_k", "bound": "1..200", "request_id": "abc"}


def test_failure_of_subclass_keeps_own_reason() -> None:
    """A subclass with a row of its own is found before its parent."""
    info, _ = _details(failure_of(TypeMismatch("filter.year", "a whole number", "no"), "r"))
    assert info.reason == "TYPE_MISMATCH"


def test_failure_of_long_text_names_limit_and_count() -> None:
    """A text above the limit is named with both numbers (EMB-20)."""
    info, _ = _details(failure_of(InputTooLong(1, 603, 256), "r"))
    assert info.metadata["field"] == "texts[1]"
    assert (info.metadata["limit_tokens"], info.metadata["token_count"]) == ("256", "603")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("redis://u:SECRET1@h"),
        IndexUnavailable("qdrant", "redis://u:SECRET1@h /srv/x"),
        BackendUnavailable("llm", "http://u:SECRET1@h/v1"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_failure_hides_foreign_words(error: Exception) -> None:
    """What may hold an address, a class or a path stays in our log (GRP-02)."""
    failure = failure_of(error, "abc123")
    info, _ = _details(failure)
    said = f"{failure.text} {info}"
    assert "SECRET1" not in said
    assert type(error).__name__ not in said
    assert "/srv" not in said
    assert info.metadata["request_id"] == "abc123"


def test_failure_bounds_its_size() -> None:
    """A huge value in an error does not outgrow the trailing metadata."""
    failure = failure_of(InvalidRequest("f" * 100_000, "b" * 100_000, "m" * 100_000), "r")
    assert sum(len(value) for _, value in failure.trailing) < 8_000
