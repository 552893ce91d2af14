"""What each collection said at which time: the judge of what may be served.

A write holds from somewhere between its beginning and its acknowledgement. So a version may be read by whoever asks
before its successor was acknowledged, and ends after it was begun. Times are strictly increasing numbers of one clock.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bench._common.consistency.facts import Topic, statement
from indexers.types import CollectionKey, Document, Passage


class Clock:
    """Nanoseconds of time.monotonic_ns, never the same twice."""

    def __init__(self) -> None:
        self._last_ns = 0

    def now_ns(self) -> int:
        """Returns the time, later than any time before."""
        self._last_ns = max(self._last_ns + 1, time.monotonic_ns())
        return self._last_ns


@dataclass(slots=True)
class Version:
    """A document as one write left it; `document` is None when the write deleted it."""

    document: Document | None
    topic: Topic | None
    begun_ns: float
    ended_ns: float = math.inf  # when the next write was acknowledged


@dataclass(slots=True)
class Absence:
    """While a collection may not have been there."""

    begun_ns: float
    ended_ns: float = math.inf


@dataclass(frozen=True, slots=True)
class Asked:
    """When a question was under way, and what it may see."""

    key: CollectionKey
    site: str | None  # of the filter
    begun_ns: float
    ended_ns: float


@dataclass(slots=True)
class _History:
    versions: list[Version] = field(default_factory=lambda: [Version(None, None, 0)])


class Truth:
    """The versions of all documents of all collections."""

    def __init__(self) -> None:
        self._histories: dict[CollectionKey, dict[str, _History]] = defaultdict(dict)
        self._absences: dict[CollectionKey, list[Absence]] = defaultdict(list)
        self._written: dict[str, CollectionKey] = {}

    def begin(self, key: CollectionKey, document_id: str, version: Version) -> None:
        """Says that a write has begun."""
        self._histories[key].setdefault(document_id, _History()).versions.append(version)
        if version.document is not None and version.topic is not None:
            self._written[version.document.text] = key
            self._written[_said(version.document)] = key

    def acknowledge(self, key: CollectionKey, document_id: str, now_ns: float) -> None:
        """Says that the last write that was begun is acknowledged."""
        versions = self._histories[key][document_id].versions
        for version in versions[:-1]:
            version.ended_ns = min(version.ended_ns, now_ns)

    def note_absence(self, key: CollectionKey, begun_ns: float) -> Absence:
        """Says that the collection itself may not be there from now on, until the end is set in what is returned."""
        absence = Absence(begun_ns)
        self._absences[key].append(absence)
        return absence

    def was_absent(self, asked: Asked) -> bool:
        """Tells whether the collection may not have been there."""
        absences = self._absences[asked.key]
        return any(one.begun_ns < asked.ended_ns and asked.begun_ns < one.ended_ns for one in absences)

    def now(self, key: CollectionKey) -> Mapping[str, Version]:
        """Returns the documents that are there, as the last writes left them."""
        found = {name: history.versions[-1] for name, history in self._histories[key].items()}
        return {name: version for name, version in found.items() if version.document is not None}

    def earlier(self, key: CollectionKey, document_id: str) -> list[Version]:
        """Returns the versions of a document that were there once."""
        return [one for one in self._histories[key][document_id].versions if one.document is not None]

    def may_read(self, asked: Asked, passage: Passage) -> bool:
        """Tells whether a document with just this title and text may have been read."""
        return any(
            _passes(one, asked.site)
            and one.document is not None
            and (one.document.title, one.document.text) == (passage.title, passage.text)
            for one in self._readable(asked, passage.document_id)
        )

    def may_say_nothing(self, asked: Asked, topic: Topic) -> bool:
        """Tells whether no document on the topic may have been there."""
        return all(
            any(one.topic != topic or not _passes(one, asked.site) for one in self._readable(asked, document_id))
            for document_id in self._histories[asked.key]
        )

    def may_quote(self, asked: Asked, topic: Topic, said: str) -> bool:
        """Tells whether a document on the topic that may have been read says so."""
        return any(
            one.topic == topic and one.document is not None and _said(one.document) == said
            for document_id in self._histories[asked.key]
            for one in self._readable(asked, document_id)
            if _passes(one, asked.site)
        )

    def fault(self, key: CollectionKey, said: str) -> str:
        """Returns what is wrong with a text that must not be served."""
        owner = self._written.get(said)
        if owner is None:
            return "wrong"
        return "cross-tenant" if owner.tenant != key.tenant else "stale" if owner == key else "cross-collection"

    def trim(self, before_ns: float) -> None:
        """Forgets what nobody can read any more who asks from then on, but one old version a document."""
        for histories in self._histories.values():
            for history in histories.values():
                old = [one for one in history.versions if one.ended_ns < before_ns]
                history.versions = old[-2:] + [one for one in history.versions if one.ended_ns >= before_ns]

    def _readable(self, asked: Asked, document_id: str) -> Iterator[Version]:
        history = self._histories[asked.key].get(document_id, _History())  # another's document may have been cited
        for version in history.versions:
            if version.begun_ns < asked.ended_ns and asked.begun_ns < version.ended_ns:
                yield version


def _said(document: Document) -> str:
    return statement(document.title, document.text)


def _passes(version: Version, site: str | None) -> bool:
    return version.document is not None and site in (None, version.document.metadata["site"])
