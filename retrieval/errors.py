"""What can go wrong while a request is served.

RetrievalError
├── InvalidRequest              the caller's fault; names the field and the bound
├── Unauthenticated             no credential, or none that we know
├── PermissionDenied            the credential lacks the role
├── DeadlineExceeded            the request's time is used up; names the stage
├── Overloaded                  refused at once; says when to come back
├── ShuttingDown                the server is draining
├── QueryNotEncoded             the encoder failed on the query
├── RerankerMissing             a rerank was asked for and no cross-encoder is configured
├── DocumentNotFound            the collection holds no document of that id
├── FlightCancelled             work that requests share was cancelled, and not because they left
├── FollowerBehind              a reader of a shared stream fell too far behind
├── NotCached                   only what is cached was asked for, and it is not
├── MigrationActive             another migration of the collection is under way
├── MigrationRefused            what a migration has built is worse than it may be
├── AnswerNotFound              no cached answer has that key
├── BackendError                the answer's backend
│   ├── BackendUnknown          no backend of that name
│   ├── BackendForbidden        a rule forbids the backend that was named
│   ├── NoBackendAllowed        the rules and bounds leave no backend
│   ├── BackendUnavailable      it cannot be reached, refuses, or fails before the first token
│   ├── BackendTimeout          no first token within its time
│   └── BackendCut              the stream broke off or stalled after the first token; the answer is not whole
└── ConfigError                 the configuration cannot be used; lists every fault

Classes hold facts as attributes and know nothing of gRPC; `retrieval.server.error_table` maps them to statuses.
"""

from __future__ import annotations


class RetrievalError(Exception):
    """Anything that this package raises on purpose."""


class InvalidRequest(RetrievalError):
    """The caller's fault: `field` is what was wrong, `bound` what is allowed."""

    def __init__(self, field: str, bound: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.bound = bound


class Unauthenticated(RetrievalError):
    """No credential was presented, or none that we know."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; present an API key as `authorization: Bearer KEY`")
        self.reason = reason


class PermissionDenied(RetrievalError):
    """The credential lacks the role."""

    def __init__(self, role: str) -> None:
        super().__init__(f"this call needs the role {role!r}; use a key that has it")
        self.role = role


class DeadlineExceeded(RetrievalError):
    """The request's time is used up."""

    def __init__(self, stage: str, budget_ms: float) -> None:
        super().__init__(f"the deadline of {budget_ms:.3g} ms passed in stage {stage}; allow more time")
        self.stage = stage
        self.budget_ms = budget_ms


class Overloaded(RetrievalError):
    """Refused at once, since waiting would not help."""

    def __init__(self, resource: str, limit: int, retry_after_ms: float) -> None:
        super().__init__(f"{resource} are at their limit of {limit}; retry in {retry_after_ms:.0f} ms")
        self.resource = resource
        self.limit = limit
        self.retry_after_ms = retry_after_ms


class ShuttingDown(RetrievalError):
    """The server is draining and takes nothing new."""

    def __init__(self) -> None:
        super().__init__("the server is shutting down; send the request to another replica")


class QueryNotEncoded(RetrievalError):
    """The encoder failed on the query."""

    def __init__(self, model: str) -> None:
        super().__init__(f"model {model!r} cannot encode this query; rephrase it or search with mode sparse")
        self.model = model


class RerankerMissing(RetrievalError):
    """A rerank was asked for, and no cross-encoder is configured."""

    def __init__(self) -> None:
        super().__init__("no cross-encoder is configured; set rerank.model or leave the rerank option out")


class DocumentNotFound(RetrievalError):
    """The collection holds no document of that id."""

    def __init__(self, document_id: str) -> None:
        super().__init__(f"document {document_id!r} does not exist in this collection; check the id")
        self.document_id = document_id


class FlightCancelled(RetrievalError):
    """Shared work was cancelled, and not because its callers left."""

    def __init__(self) -> None:
        super().__init__("the shared work was cancelled before it was done; ask again")


class FollowerBehind(RetrievalError):
    """A follower read so much slower than others that what it has to read next is not kept any more."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        super().__init__(
            f"reading fell more than {max_items} items or {max_bytes} bytes behind; ask again, read faster"
        )
        self.max_items = max_items
        self.max_bytes = max_bytes


class NotCached(RetrievalError):
    """Only what is cached was asked for, and it is not."""

    def __init__(self, what: str) -> None:
        super().__init__(f"no cached {what} serves this request; ask again without cache_control.only_if_cached")
        self.what = what


class MigrationActive(RetrievalError):
    """Another migration of the collection is under way."""

    def __init__(self, collection: str, model: str) -> None:
        super().__init__(f"collection {collection!r} is being moved to {model}; wait for that, or cancel it")
        self.collection = collection
        self.model = model


class MigrationRefused(RetrievalError):
    """What a migration has built is worse than it may be; the collection serves as before."""

    def __init__(self, collection: str, reason: str) -> None:
        super().__init__(f"collection {collection!r} does not move: {reason}")
        self.collection = collection


class AnswerNotFound(RetrievalError):
    """The caller's tenant has no cached answer of that key here."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no cached answer has the key {key!r}; it may have left the cache")
        self.key = key


class BackendError(RetrievalError):
    """The generation backend did not answer as it should; `backend` is its configured name."""

    def __init__(self, backend: str, message: str) -> None:
        super().__init__(message)
        self.backend = backend


class BackendUnknown(BackendError):
    """No backend of that name is configured."""

    def __init__(self, backend: str, known: tuple[str, ...]) -> None:
        super().__init__(backend, f"no backend is called {backend!r}; choose one of {', '.join(known)}")
        self.known = known


class BackendForbidden(BackendError):
    """A rule forbids the backend that the request names."""

    def __init__(self, backend: str, rule: str, allowed: tuple[str, ...]) -> None:
        choice = f"choose one of {', '.join(allowed)}" if allowed else "no backend is allowed"
        super().__init__(backend, f"rule {rule!r} forbids backend {backend!r} for this request; {choice}")
        self.rule = rule
        self.allowed = allowed


class NoBackendAllowed(BackendError):
    """Rules, windows and cost ceilings leave no backend; `excluded` says why, by backend."""

    def __init__(self, excluded: tuple[tuple[str, str], ...]) -> None:
        why = ", ".join(f"{name}: {reason}" for name, reason in excluded)
        super().__init__("", f"no backend may answer this request ({why}); change the request or the rules")
        self.excluded = excluded


class BackendUnavailable(BackendError):
    """The backend cannot be reached, refuses, or failed before the first token.

    `transient` tells whether the same request may work in a moment, `retry_after_s` when its server says so (0 when it
    does not), `status` that of HTTP where it refused (0 otherwise).
    """

    def __init__(
        self, backend: str, reason: str, *, transient: bool = True, retry_after_s: float = 0.0, status: int = 0
    ) -> None:
        super().__init__(backend, f"backend {backend!r} is unavailable: {reason}; try again later or choose another")
        self.reason = reason
        self.transient = transient
        self.retry_after_s = retry_after_s
        self.status = status


class BackendTimeout(BackendError):
    """No first token came within the backend's time."""

    def __init__(self, backend: str, waited_ms: float) -> None:
        super().__init__(
            backend, f"backend {backend!r} sent nothing for {waited_ms:.0f} ms; allow more time or choose another"
        )
        self.waited_ms = waited_ms


class BackendCut(BackendError):
    """The stream broke off or stalled after the first token: what came is a part, not an answer."""

    def __init__(self, backend: str, received_chars: int, reason: str = "its stream broke off") -> None:
        super().__init__(
            backend,
            f"backend {backend!r} failed after {received_chars} characters: {reason}; discard them and ask again",
        )
        self.received_chars = received_chars
        self.reason = reason


class ConfigError(RetrievalError):
    """The configuration cannot be used; nothing of it was applied."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("the configuration cannot be used:\n" + "\n".join(f"  - {fault}" for fault in faults))
        self.faults = faults
