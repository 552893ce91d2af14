"""What can go wrong on the write side and in the Index.

IndexerError
├── InvalidInput                     the caller's fault; names the field and the bound
│   ├── InvalidName                  a tenant or collection name outside the allowed characters
│   ├── InvalidDocument              a document that cannot be indexed as it is
│   ├── InvalidVector                a wrong dimension, NaN or Inf
│   ├── InvalidPageToken
│   ├── UnknownField                 a filter names a field that the schema does not declare
│   ├── TypeMismatch                 a value that cannot be coerced to the declared type
│   ├── FilterEmpty                  a filter without conditions
│   ├── FilterTooDeep
│   └── FilterSyntax                 the text form of a filter does not parse
├── CollectionNotFound
├── CollectionExists
├── SchemaConflict                   an update that would change a declared field
├── TooManyCollections
├── ModelMismatch                    the collection holds another model's vectors
├── CollectionMoved                  it has moved to another model meanwhile; open it again
├── ParseFailed                      a file gives no text; the reason is for people
├── DataFolderLocked                 another process holds the data folder
├── IndexCorrupt                     files disagree with each other; says how to rebuild
├── IndexUnavailable                 the store cannot be reached, or fails
├── BuildFailed                      the child process that builds a generation failed
├── SourceError                      where documents come from
│   ├── SourceUnavailable            cannot be reached or read now; trying again may help
│   ├── ItemGone                     what was listed is no longer there
│   └── ItemUnreadable               can never be read so: too large, forbidden, an address that is not allowed
└── JobError
    ├── InvalidJob                   a job file that cannot be used; names the file, the line and the key
    ├── JobNotFound
    ├── RunNotFound
    ├── RunActive                    a run of the job has not ended
    ├── LeaseLost                    another worker has taken over; whatever this one holds is void
    ├── JobStoreUnavailable          the queue cannot be reached or is broken
    └── TargetUnavailable            the server that a job writes to cannot be reached; trying again may help
"""

from __future__ import annotations


class IndexerError(Exception):
    """Anything that this package raises on purpose."""


class InvalidInput(IndexerError):
    """The caller's fault: `field` is what was wrong, `bound` what is allowed."""

    def __init__(self, field: str, bound: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.bound = bound


class InvalidName(InvalidInput):
    """A name outside the allowed characters or length."""


class InvalidDocument(InvalidInput):
    """A document that cannot be indexed as it is."""


class InvalidVector(InvalidInput):
    """A vector of another dimension or with a non-finite value."""


class InvalidPageToken(InvalidInput):
    """A page token that no listing gave out."""


class UnknownField(InvalidInput):
    """A filter names a field that the collection's schema does not declare."""


class TypeMismatch(InvalidInput):
    """A value that cannot be coerced to the field's declared type."""


class FilterEmpty(InvalidInput):
    """A filter that is there but has no conditions."""


class FilterTooDeep(InvalidInput):
    """A filter nested deeper, or with more conditions, than is allowed."""


class FilterSyntax(InvalidInput):
    """The text form of a filter does not parse."""


class CollectionNotFound(IndexerError):
    """No such collection for this tenant."""

    def __init__(self, collection: str) -> None:
        super().__init__(f"collection {collection!r} does not exist; create it or check the name")
        self.collection = collection


class CollectionExists(IndexerError):
    """The name is taken."""

    def __init__(self, collection: str) -> None:
        super().__init__(f"collection {collection!r} exists already; choose another name or update it")
        self.collection = collection


class SchemaConflict(IndexerError):
    """An update would change the type of a declared field."""

    def __init__(self, field: str, declared: str, asked: str) -> None:
        super().__init__(f"field {field!r} is declared as {declared}, not {asked}; use another field name")
        self.field = field
        self.declared = declared
        self.asked = asked


class TooManyCollections(IndexerError):
    """The tenant has as many collections as are allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the tenant has {limit} collections, which is the limit; delete one or raise it")
        self.limit = limit


class ModelMismatch(IndexerError):
    """The collection holds the vectors of another model than the configured one."""

    def __init__(
        self, collection: str, stored: str, stored_dim: int, configured: str, configured_dim: int, reason: str = ""
    ) -> None:
        why = f" and cannot be used ({reason})" if reason else ""
        super().__init__(
            f"collection {collection!r} holds vectors of {stored} ({stored_dim} dimensions){why}, the configured model "
            f"is {configured} ({configured_dim} dimensions); migrate the collection, or configure its model"
        )
        self.collection = collection
        self.stored = stored
        self.stored_dim = stored_dim
        self.configured = configured
        self.configured_dim = configured_dim


class CollectionMoved(IndexerError):
    """The collection has moved to another model since it was opened; whoever opens it again can go on."""

    def __init__(self, collection: str) -> None:
        super().__init__(f"collection {collection!r} has moved to another model; open it again")
        self.collection = collection


class ParseFailed(IndexerError):
    """A file gives no text to index; `kind` is a short constant word that failures are counted by."""

    def __init__(self, path: str, reason: str, kind: str = "unparsable") -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.kind = kind


class DataFolderLocked(IndexerError):
    """Another process holds the data folder."""

    def __init__(self, folder: str, holder: str) -> None:
        super().__init__(f"data folder {folder} is in use by {holder}; stop it or choose another folder")
        self.folder = folder
        self.holder = holder


class IndexCorrupt(IndexerError):
    """Files on disk disagree with each other."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class IndexUnavailable(IndexerError):
    """The store cannot be reached, is too slow, or fails."""

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"index {store} is unavailable: {reason}; try again later")
        self.store = store
        self.reason = reason


class BuildFailed(IndexerError):
    """The child process that builds a generation failed; the old generation goes on serving."""

    def __init__(self, collection: str, reason: str) -> None:
        super().__init__(f"building collection {collection!r} failed: {reason}; it goes on serving the previous state")
        self.collection = collection
        self.reason = reason


class SourceError(IndexerError):
    """Something about the place that documents come from; `reason` is for people and holds no credentials."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


class SourceUnavailable(SourceError):
    """It cannot be reached or read now; trying again may help. `retry_after_s` is what it asked for, 0 for nothing."""

    def __init__(self, name: str, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(name, reason)
        self.retry_after_s = retry_after_s


class ItemGone(SourceError):
    """What was listed is no longer there."""


class ItemUnreadable(SourceError):
    """It can never be read so; `kind` is a short constant word that failures are counted by."""

    def __init__(self, name: str, reason: str, kind: str = "unreadable") -> None:
        super().__init__(name, reason)
        self.kind = kind


class JobError(IndexerError):
    """Something about a job."""


class InvalidJob(JobError):
    """A job file that cannot be used; `faults` are lines for people, each with file, line and key."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class JobNotFound(JobError):
    """No such job for this tenant."""

    def __init__(self, job: str) -> None:
        super().__init__(f"job {job!r} does not exist; submit it first or check the name")
        self.job = job


class RunNotFound(JobError):
    """No such run for this tenant."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id!r} does not exist; `headrace jobs list` shows those that do")
        self.run_id = run_id


class RunActive(JobError):
    """A run of the job has not ended."""

    def __init__(self, job: str, run_id: str) -> None:
        super().__init__(f"run {run_id} of job {job!r} has not ended; watch it, or cancel it first")
        self.job = job
        self.run_id = run_id


class LeaseLost(JobError):
    """Another worker has taken over; whatever this one holds is void."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was taken over by another worker, since this one was silent for too long")
        self.what = what


class JobStoreUnavailable(JobError):
    """The queue cannot be reached or is broken."""

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"job store {store} is unavailable: {reason}; try again later")
        self.store = store
        self.reason = reason


class TargetUnavailable(JobError):
    """The server that a job writes to cannot be reached now."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"{target} cannot be reached: {reason}; trying again may help")
        self.target = target
        self.reason = reason
