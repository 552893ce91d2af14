"""What was learned of similar questions, apart for each collection of each tenant, and as much of it as has room."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from indexers.types import CollectionKey
from retrieval.answers.remembering import LearnedFiles
from retrieval.answers.risk import Judgement, RiskControl
from retrieval.caching.keys import CacheKey

_MOST_COLLECTIONS = 256


@dataclass(slots=True)
class Learned:
    """What a collection's control was taught, in numbers since it is there."""

    control: RiskControl = field(default_factory=RiskControl)
    labels: int = 0  # comparisons of a kept answer with a new one
    errors: int = 0  # of them, those that did not agree
    served: int = 0  # answers that served a question in other words
    changed: bool = False  # since it was saved


class Risks:
    """The risk controls; the one that was not used for longest gives way."""

    def __init__(self, files: LearnedFiles | None = None, most: int = _MOST_COLLECTIONS) -> None:
        """`files` keep over restarts what was learned; without them it ends with the process."""
        self._files = files
        self._most = most
        self._learned: OrderedDict[CollectionKey, Learned] = OrderedDict()
        self._comparisons: Counter[tuple[bool, bool]] = Counter()

    @property
    def comparisons(self) -> Mapping[tuple[bool, bool], int]:
        """How many comparisons there were, by whether the kept answer had served and whether the new one agreed."""
        return self._comparisons

    def of(self, collection: CollectionKey) -> RiskControl:
        """Returns the control of a collection, a new one if there is none."""
        return self._of(collection).control

    def count_label(self, collection: CollectionKey, *, served: bool, agree: bool) -> None:
        """Counts a comparison of a kept answer with a new one."""
        self._comparisons[served, agree] += 1
        learned = self._of(collection)
        learned.changed = True
        learned.labels += 1
        learned.errors += not agree

    async def prepare(self, collection: CollectionKey) -> None:
        """Reads what was learned of a collection in an earlier process, before it is first asked for."""
        if self._files is None or collection in self._learned:
            return
        control = await asyncio.to_thread(self._files.load, collection)
        if collection not in self._learned:
            self._of(collection).control = control

    async def save(self) -> None:
        """Saves what has changed since the last time."""
        if self._files is None:
            return
        for collection, learned in list(self._learned.items()):
            if learned.changed:
                learned.changed = False
                await asyncio.to_thread(self._files.save, collection, learned.control.content())

    async def unlearn(self, collection: CollectionKey) -> None:
        """Forgets what was learned of a collection, here and on disk."""
        self._learned.pop(collection, None)
        if self._files is not None:
            await asyncio.to_thread(self._files.remove, collection)

    def count_served(self, collection: CollectionKey) -> None:
        """Counts an answer that served a question in other words."""
        self._of(collection).served += 1

    def complain(self, key: CacheKey, judgement: Judgement, features: NDArray[np.float64]) -> None:
        """Learns that an answer which served a question in other words was bad."""
        learned = self._of(CollectionKey(key.tenant, key.collection))
        learned.changed = True
        learned.control.report(key.digest, judgement, features)

    def of_tenant(self, tenant: str) -> Iterator[tuple[str, Learned]]:
        """Yields the tenant's collections, by name, with what was learned of them."""
        for key in sorted(self._learned):
            if key.tenant == tenant:
                yield key.collection, self._learned[key]

    def forget(self, key: CacheKey) -> None:
        """Drops what is known of an answer that is gone."""
        learned = self._learned.get(CollectionKey(key.tenant, key.collection))
        if learned is not None:
            learned.control.forget(key.digest)

    def _of(self, collection: CollectionKey) -> Learned:
        learned = self._learned.get(collection)
        if learned is None:
            learned = self._learned[collection] = Learned()
            if len(self._learned) > self._most:
                self._learned.popitem(last=False)
        self._learned.move_to_end(collection)
        return learned
