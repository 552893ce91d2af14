"""What an indexing call or run did, in figures and in words. Lists are bounded, counts are not."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from indexers.types import Epoch

_LISTED = 1_000  # problems of one kind that a report lists by name


class DocumentStatus(enum.Enum):
    """What became of one document."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SUPERSEDED = "superseded"  # somebody wrote or deleted it meanwhile, so it was not touched


@dataclass(frozen=True, slots=True)
class DocumentOutcome:
    """What became of one document, and why."""

    document_id: str
    status: DocumentStatus
    chunk_count: int = 0  # written
    token_count: int = 0  # encoded
    reason: str = ""  # of a failure
    fingerprint: str = ""  # that it is stored with
    chunk_tokens: tuple[int, ...] = ()  # of each chunk that was written
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpsertReport:
    """One outcome a document, in order, and the epoch from which on searches find them."""

    outcomes: tuple[DocumentOutcome, ...]
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Problem:
    """A file or document, and what a person should know about it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """How far a run has come."""

    written: int = 0  # documents
    unchanged: int = 0  # documents
    failed: int = 0  # files, rows and documents
    skipped: int = 0  # files
    removed: int = 0  # documents
    superseded: int = 0  # documents
    chunks: int = 0  # written
    tokens: int = 0  # encoded


@dataclass(frozen=True, slots=True)
class IndexReport:
    """A finished run. The lists hold the first thousand of each kind; `counts` counts them all."""

    counts: IndexCounts
    failures: tuple[Problem, ...]
    skips: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    epoch: Epoch


class Progress(Protocol):
    """Hears of a run as it goes on."""

    def advanced(self, counts: IndexCounts) -> None:
        """Takes the counts since the start of the run; called on the event loop, after each batch."""
        ...


class Tally:
    """Adds up a run."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._failures: list[Problem] = []
        self._skips: list[Problem] = []
        self._warnings: list[Problem] = []

    @property
    def counts(self) -> IndexCounts:
        """The counts so far."""
        return IndexCounts(**self._counts)

    def add(self, outcome: DocumentOutcome) -> None:
        """Counts a document."""
        self._counts[outcome.status.value] += 1
        self._counts["chunks"] += outcome.chunk_count
        self._counts["tokens"] += outcome.token_count
        if outcome.status is DocumentStatus.FAILED:
            _list(self._failures, outcome.document_id, outcome.reason)
        for warning in outcome.warnings:
            _list(self._warnings, outcome.document_id, warning)

    def fail(self, name: str, reason: str) -> None:
        """Counts what gave no document."""
        self._counts["failed"] += 1
        _list(self._failures, name, reason)

    def skip(self, name: str, reason: str) -> None:
        """Counts a file that was not meant to be read."""
        self._counts["skipped"] += 1
        _list(self._skips, name, reason)

    def warn(self, name: str, reason: str) -> None:
        """Lists what a person should know, though nothing failed."""
        _list(self._warnings, name, reason)

    def remove(self, count: int) -> None:
        """Counts documents that were removed because their files are gone."""
        self._counts["removed"] += count

    def report(self, epoch: Epoch) -> IndexReport:
        """Closes the sum."""
        return IndexReport(self.counts, tuple(self._failures), tuple(self._skips), tuple(self._warnings), epoch)


def _list(problems: list[Problem], name: str, reason: str) -> None:
    if len(problems) < _LISTED:
        problems.append(Problem(name, reason))
