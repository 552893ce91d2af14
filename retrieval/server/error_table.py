"""The one table that maps our errors to what a caller sees: status, reason, facts, and whether the text is for callers.

A class is looked up along its MRO, so a subclass without a row of its own has its parent's. Texts that may hold foreign
words (an address, a path, another program's message) stay in our log; the table gives those rows a text of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grpc import StatusCode

from encoders import errors as encoder
from indexers import errors as indexer
from rerank import errors as rerank
from retrieval import errors as retrieval
from retrieval.server.http import errors as http

Facts = Callable[[Any], Mapping[str, str]]


def attributes(*names: str) -> Facts:
    """Returns a function that reads these attributes of an error as text."""
    return lambda error: {name: str(getattr(error, name)) for name in names}


_NOTHING = attributes()


@dataclass(frozen=True, slots=True)
class Row:
    """What a caller sees of one class of errors; `text` replaces the error's own when that is not for callers."""

    code: StatusCode
    reason: str
    facts: Facts = _NOTHING
    text: str | None = None


_INVALID = attributes("field", "bound")

ROWS: Mapping[type[Exception], Row] = {
    retrieval.InvalidRequest: Row(StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST", _INVALID),
    http.BodyTooLarge: Row(StatusCode.INVALID_ARGUMENT, "BODY_TOO_LARGE", _INVALID),
    http.MediaTypeUnknown: Row(StatusCode.INVALID_ARGUMENT, "MEDIA_TYPE_UNKNOWN", _INVALID),
    http.HostForbidden: Row(StatusCode.PERMISSION_DENIED, "HOST_FORBIDDEN", _INVALID),
    http.TooManyConnections: Row(StatusCode.UNAVAILABLE, "TOO_MANY_CONNECTIONS", attributes("limit")),
    retrieval.Unauthenticated: Row(StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
    retrieval.PermissionDenied: Row(StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED", attributes("role")),
    retrieval.DeadlineExceeded: Row(
        StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", attributes("stage", "budget_ms")
    ),
    retrieval.Overloaded: Row(
        StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", attributes("resource", "limit", "retry_after_ms")
    ),
    retrieval.ShuttingDown: Row(StatusCode.UNAVAILABLE, "SHUTTING_DOWN"),
    retrieval.QueryNotEncoded: Row(StatusCode.INTERNAL, "QUERY_NOT_ENCODED", attributes("model")),
    retrieval.RerankerMissing: Row(StatusCode.FAILED_PRECONDITION, "RERANKER_MISSING"),
    retrieval.DocumentNotFound: Row(StatusCode.NOT_FOUND, "DOCUMENT_NOT_FOUND", attributes("document_id")),
    retrieval.FlightCancelled: Row(StatusCode.UNAVAILABLE, "WORK_CANCELLED"),
    retrieval.FollowerBehind: Row(StatusCode.RESOURCE_EXHAUSTED, "READER_BEHIND", attributes("max_items", "max_bytes")),
    retrieval.NotCached: Row(StatusCode.FAILED_PRECONDITION, "NOT_CACHED", attributes("what")),
    retrieval.MigrationActive: Row(
        StatusCode.FAILED_PRECONDITION, "MIGRATION_ACTIVE", attributes("collection", "model")
    ),
    retrieval.MigrationRefused: Row(StatusCode.FAILED_PRECONDITION, "MIGRATION_REFUSED", attributes("collection")),
    retrieval.AnswerNotFound: Row(StatusCode.NOT_FOUND, "ANSWER_NOT_FOUND", attributes("key")),
    retrieval.BackendError: Row(
        StatusCode.UNAVAILABLE,
        "BACKEND_FAILED",
        attributes("backend"),
        "the generation backend failed; try again later",
    ),
    retrieval.BackendUnknown: Row(
        StatusCode.INVALID_ARGUMENT,
        "BACKEND_UNKNOWN",
        lambda error: {"field": "backend", "bound": ", ".join(error.known), "backend": error.backend},
    ),
    retrieval.BackendForbidden: Row(
        StatusCode.PERMISSION_DENIED,
        "BACKEND_FORBIDDEN",
        lambda error: {"backend": error.backend, "rule": error.rule, "allowed": ", ".join(error.allowed)},
    ),
    retrieval.NoBackendAllowed: Row(
        StatusCode.FAILED_PRECONDITION, "NO_BACKEND_ALLOWED", lambda error: dict(error.excluded)
    ),
    retrieval.BackendUnavailable: Row(
        StatusCode.UNAVAILABLE,
        "BACKEND_UNAVAILABLE",
        attributes("backend"),
        "the generation backend is unavailable; try again later or choose another",
    ),
    retrieval.BackendTimeout: Row(StatusCode.UNAVAILABLE, "BACKEND_TIMEOUT", attributes("backend", "waited_ms")),
    retrieval.BackendCut: Row(StatusCode.UNAVAILABLE, "BACKEND_CUT", attributes("backend", "received_chars")),
    retrieval.ConfigError: Row(
        StatusCode.FAILED_PRECONDITION, "CONFIG_INVALID", lambda error: {"faults": "\n".join(error.faults)}
    ),
    encoder.ModelError: Row(
        StatusCode.FAILED_PRECONDITION, "MODEL_UNUSABLE", text="a model cannot be used; look at the server's log"
    ),
    encoder.ExtraMissing: Row(
        StatusCode.FAILED_PRECONDITION, "EXTRA_MISSING", text="a library is not installed; look at the server's log"
    ),
    encoder.InputTooLong: Row(
        StatusCode.INVALID_ARGUMENT,
        "INPUT_TOO_LONG",
        lambda error: {
            "field": f"texts[{error.position}]",
            "bound": f"{error.limit_tokens} tokens",
            "limit_tokens": str(error.limit_tokens),
            "token_count": str(error.token_count),
        },
    ),
    encoder.NonFiniteOutput: Row(StatusCode.INTERNAL, "NON_FINITE_OUTPUT"),
    encoder.EncodingFailed: Row(StatusCode.INTERNAL, "ENCODING_FAILED"),
    encoder.SchedulerFull: Row(
        StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", attributes("queued_items", "capacity_items", "retry_after_ms")
    ),
    encoder.WorkExpired: Row(StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    encoder.SchedulerStopped: Row(StatusCode.UNAVAILABLE, "SHUTTING_DOWN"),
    indexer.InvalidInput: Row(StatusCode.INVALID_ARGUMENT, "INVALID_INPUT", _INVALID),
    indexer.InvalidName: Row(StatusCode.INVALID_ARGUMENT, "INVALID_NAME", _INVALID),
    indexer.InvalidDocument: Row(StatusCode.INVALID_ARGUMENT, "INVALID_DOCUMENT", _INVALID),
    indexer.InvalidVector: Row(StatusCode.INVALID_ARGUMENT, "INVALID_VECTOR", _INVALID),
    indexer.InvalidPageToken: Row(StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN", _INVALID),
    indexer.UnknownField: Row(StatusCode.INVALID_ARGUMENT, "UNKNOWN_FIELD", _INVALID),
    indexer.TypeMismatch: Row(StatusCode.INVALID_ARGUMENT, "TYPE_MISMATCH", _INVALID),
    indexer.FilterEmpty: Row(StatusCode.INVALID_ARGUMENT, "FILTER_EMPTY", _INVALID),
    indexer.FilterTooDeep: Row(StatusCode.INVALID_ARGUMENT, "FILTER_TOO_LARGE", _INVALID),
    indexer.FilterSyntax: Row(StatusCode.INVALID_ARGUMENT, "FILTER_SYNTAX", _INVALID),
    indexer.CollectionNotFound: Row(StatusCode.NOT_FOUND, "COLLECTION_NOT_FOUND", attributes("collection")),
    indexer.CollectionExists: Row(StatusCode.ALREADY_EXISTS, "COLLECTION_EXISTS", attributes("collection")),
    indexer.SchemaConflict: Row(
        StatusCode.FAILED_PRECONDITION, "SCHEMA_CONFLICT", attributes("field", "declared", "asked")
    ),
    indexer.TooManyCollections: Row(StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_COLLECTIONS", attributes("limit")),
    indexer.ModelMismatch: Row(
        StatusCode.FAILED_PRECONDITION,
        "MODEL_MISMATCH",
        attributes("collection", "stored", "stored_dim", "configured", "configured_dim"),
    ),
    indexer.CollectionMoved: Row(StatusCode.ABORTED, "COLLECTION_MOVED", attributes("collection")),
    indexer.ParseFailed: Row(StatusCode.INVALID_ARGUMENT, "PARSE_FAILED", text="the file gives no text to index"),
    indexer.DataFolderLocked: Row(
        StatusCode.FAILED_PRECONDITION, "DATA_FOLDER_LOCKED", text="the data folder is in use by another process"
    ),
    indexer.IndexCorrupt: Row(
        StatusCode.INTERNAL, "INDEX_CORRUPT", text="the index's files disagree; an operator must look at the log"
    ),
    indexer.IndexUnavailable: Row(
        StatusCode.UNAVAILABLE, "INDEX_UNAVAILABLE", text="the index is unavailable; try again later"
    ),
    indexer.BuildFailed: Row(
        StatusCode.INTERNAL,
        "BUILD_FAILED",
        attributes("collection"),
        "the build failed; the collection goes on serving its previous state",
    ),
    indexer.SourceError: Row(
        StatusCode.FAILED_PRECONDITION, "SOURCE_FAILED", text="the source cannot be read; look at the server's log"
    ),
    indexer.SourceUnavailable: Row(
        StatusCode.UNAVAILABLE, "SOURCE_UNAVAILABLE", text="the source cannot be read now; try again later"
    ),
    indexer.ItemGone: Row(StatusCode.NOT_FOUND, "ITEM_GONE", text="what the source listed is no longer there"),
    indexer.ItemUnreadable: Row(
        StatusCode.FAILED_PRECONDITION, "ITEM_UNREADABLE", attributes("kind"), "an item of the source cannot be read"
    ),
    indexer.JobError: Row(
        StatusCode.FAILED_PRECONDITION, "JOB_FAILED", text="the job cannot be carried out; look at the server's log"
    ),
    indexer.InvalidJob: Row(
        StatusCode.INVALID_ARGUMENT,
        "INVALID_JOB",
        lambda error: {"field": "spec_toml", "bound": "a job file", "faults": "\n".join(error.faults)},
    ),
    indexer.JobNotFound: Row(StatusCode.NOT_FOUND, "JOB_NOT_FOUND", attributes("job")),
    indexer.RunNotFound: Row(StatusCode.NOT_FOUND, "RUN_NOT_FOUND", attributes("run_id")),
    indexer.RunActive: Row(StatusCode.FAILED_PRECONDITION, "RUN_ACTIVE", attributes("job", "run_id")),
    indexer.LeaseLost: Row(StatusCode.ABORTED, "LEASE_LOST"),
    indexer.JobStoreUnavailable: Row(
        StatusCode.UNAVAILABLE, "JOB_STORE_UNAVAILABLE", text="the job store is unavailable; try again later"
    ),
    indexer.TargetUnavailable: Row(
        StatusCode.UNAVAILABLE, "TARGET_UNAVAILABLE", text="the collection cannot be reached; try again later"
    ),
    rerank.LateIncomplete: Row(StatusCode.UNAVAILABLE, "RERANK_INCOMPLETE", attributes("reason")),
    rerank.RerankIncomplete: Row(
        StatusCode.UNAVAILABLE, "RERANK_INCOMPLETE", attributes("scored_pairs", "asked_pairs")
    ),
    rerank.QueryTooLong: Row(
        StatusCode.INVALID_ARGUMENT,
        "INPUT_TOO_LONG",
        lambda error: {
            "field": "query",
            "bound": f"{error.limit_tokens} tokens",
            "limit_tokens": str(error.limit_tokens),
            "token_count": str(error.token_count),
        },
    ),
}


def row_for(kind: type[BaseException]) -> Row | None:
    """Returns the row of an error's class, or of its nearest parent; None for an unexpected one."""
    return next((ROWS[parent] for parent in kind.__mro__ if parent in ROWS), None)
