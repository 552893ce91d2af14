"""What was learned of similar questions, apart for each collection and model, and as much of it as has room.

What was learned is of the vectors of a model: a collection that moves to another one begins anew, in every process.
"""

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
from retrieval.scope import VectorSpace

_MOST_SPACES = 256


@dataclass(slots=True)
class Learned:
    """What the control of a space was taught, in numbers since it is there."""

    control: RiskControl = field(default_factory=RiskControl)
    labels: int = 0  # comparisons of a kept answer with a new one
    errors: int = 0  # of them, those that did not agree
    served: int = 0  # answers that served a question in other words
    changed: bool = False  # since it was saved


class Risks:
    """The risk controls; the one that was not used for longest gives way."""

    def __init__(self, files: LearnedFiles | None = None, most: int = _MOST_SPACES) -> None:
        """`files` keep over restarts what was learned; without them it ends with the process."""
        self._files = files
        self._most = most
        self._learned: OrderedDict[VectorSpace, Learned] = OrderedDict()
        self._comparisons: Counter[tuple[bool, bool]] = Counter()

    @property
    def comparisons(self) -> Mapping[tuple[bool, bool], int]:
        """How many comparisons there were, by whether the kept answer had served and whether the new one agreed."""
        return self._comparisons

    def of(self, space: VectorSpace) -> RiskControl:
        """Returns the control of a space, a new one if there is none."""
        return self._of(space).control

    def count_label(self, space: VectorSpace, *, served: bool, agree: bool) -> None:
        """Counts a comparison of a kept answer with a new one."""
        self._comparisons[served, agree] += 1
        learned = self._of(space)
        learned.changed = True
        learned.labels += 1
        learned.errors += not agree

    async def prepare(self, space: VectorSpace) -> None:
        """Reads what was learned of a space in an earlier process, before it is first asked for."""
        if self._files is None or space in self._learned:
            return
        control = await asyncio.to_thread(self._files.load, space)
        if space not in self._learned:
            self._of(space).control = control

    async def save(self) -> None:
        """Saves what has changed since the last time."""
        if self._files is None:
            return
        for space, learned in list(self._learned.items()):
            if learned.changed:
                learned.changed = False
                await asyncio.to_thread(self._files.save, space, learned.control.content())

    def count_served(self, space: VectorSpace) -> None:
        """Counts an answer that served a question in other words."""
        self._of(space).served += 1

    def complain(self, space: VectorSpace, key: CacheKey, judgement: Judgement, features: NDArray[np.float64]) -> None:
        """Learns that an answer which served a question in other words was bad."""
        learned = self._of(space)
        learned.changed = True
        learned.control.report(key.digest, judgement, features)

    def of_tenant(self, tenant: str) -> Iterator[tuple[str, Learned]]:
        """Yields the tenant's collections, by name, with what was learned under the model that was used last."""
        newest = {space.collection: learned for space, learned in self._learned.items()}
        for collection in sorted(newest):
            if collection.tenant == tenant:
                yield collection.collection, newest[collection]

    def forget(self, key: CacheKey) -> None:
        """Drops what is known of an answer that is gone."""
        collection = CollectionKey(key.tenant, key.collection)
        for space, learned in self._learned.items():
            if space.collection == collection:
                learned.control.forget(key.digest)

    def _of(self, space: VectorSpace) -> Learned:
        learned = self._learned.get(space)
        if learned is None:
            learned = self._learned[space] = Learned()
            if len(self._learned) > self._most:
                self._learned.popitem(last=False)
        self._learned.move_to_end(space)
        return learned
