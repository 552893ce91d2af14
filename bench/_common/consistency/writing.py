"""The writes of the simulation: told to the truth when they begin and when they are acknowledged.

Writes to one collection come one after another, so that it is known which of two came last; questions go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from bench._common.consistency.facts import FIELDS, NOISE, SITES, TOPICS, Topic, Values, fact_document, title_of
from bench._common.consistency.replicas import Replica
from bench._common.consistency.truth import Clock, Truth, Version
from indexers.types import CollectionKey, Document

_DOCUMENTS = 24  # of facts in a collection, at most


class Writer:
    """Adds, changes, deletes."""

    def __init__(self, truth: Truth, clock: Clock, random: Random) -> None:
        self._truth = truth
        self._clock = clock
        self._random = random
        self._values = Values()
        self._topics: dict[str, Topic] = {}  # by the text that is about it
        self._locks: defaultdict[CollectionKey, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def create(self, replica: Replica, key: CollectionKey) -> None:
        """Makes a collection with some facts in it."""
        async with self._locks[key]:
            await self._fill(replica, key)

    async def recreate(self, replica: Replica, key: CollectionKey) -> str:
        """Deletes a collection and makes another one of the same name, with other facts under the same ids."""
        async with self._locks[key]:
            begun_ns = self._clock.now_ns()
            hold = self._truth.note_absence(key, begun_ns)
            gone = list(self._truth.now(key))
            self._begin(key, dict.fromkeys(gone))
            await replica.catalog.delete(key)
            self._acknowledge(key, gone)
            await self._fill(replica, key)
            hold.ended_ns = self._clock.now_ns()
        return "recreate"

    async def change(self, replica: Replica, key: CollectionKey) -> str:
        """Does one of the things that can be done to a document, and names it."""
        async with self._locks[key]:
            there = {name: one for name, one in self._truth.now(key).items() if one.topic is not None}
            kinds = ("add", "add", "update", "update", "revert", "move", "rename", "delete", "delete")
            kind = self._random.choice(kinds if there else ("add",))
            name = f"sheet-{self._random.randrange(_DOCUMENTS)}" if kind == "add" else self._random.choice(list(there))
            if kind == "delete":
                self._begin(key, {name: None})
                index = await replica.catalog.open(key)
                await index.delete([name])
                self._acknowledge(key, [name])
            else:
                await self._write(replica, key, [self._changed(kind, key, name)])
        return kind

    def _changed(self, kind: str, key: CollectionKey, name: str) -> Document:
        if kind == "add":
            return self._fact(name, self._random.choice(TOPICS), self._random.choice(SITES))
        version = self._truth.now(key)[name]
        assert version.document is not None
        assert version.topic is not None
        document = version.document
        if kind == "move":
            site = next(one for one in SITES if one != document.metadata["site"])
            return replace(document, metadata={"site": site})
        if kind == "rename":
            return replace(document, title=title_of(self._values.next()))
        if kind == "revert":
            earlier = self._random.choice(self._truth.earlier(key, name)).document
            assert earlier is not None
            return earlier
        return self._fact(name, version.topic, str(document.metadata["site"]))

    def _fact(self, name: str, topic: Topic, site: str) -> Document:
        document = fact_document(name, topic, site, self._values.next(), self._values.next())
        self._topics[document.text] = topic
        return document

    async def _fill(self, replica: Replica, key: CollectionKey) -> None:
        await replica.catalog.create(key, dict(FIELDS), "")
        names = self._random.sample(range(_DOCUMENTS), _DOCUMENTS // 2)
        facts = [self._fact(f"sheet-{name}", self._random.choice(TOPICS), self._random.choice(SITES)) for name in names]
        await self._write(replica, key, [*NOISE, *facts])

    async def _write(self, replica: Replica, key: CollectionKey, documents: Sequence[Document]) -> None:
        self._begin(key, {document.document_id: document for document in documents})
        await replica.upsert(key, documents)
        self._acknowledge(key, [document.document_id for document in documents])

    def _begin(self, key: CollectionKey, documents: dict[str, Document | None]) -> None:
        now_ns = self._clock.now_ns()
        for name, document in documents.items():
            topic = None if document is None else self._topics.get(document.text)
            self._truth.begin(key, name, Version(document, topic, now_ns))

    def _acknowledge(self, key: CollectionKey, names: Sequence[str]) -> None:
        now_ns = self._clock.now_ns()
        for name in names:
            self._truth.acknowledge(key, name, now_ns)
