"""What apps and operators do with answers: say that one was bad, look at one, forget some.

A bad answer leaves this process and the shared tier, and is not taken back should it come from there once more; another
process that holds it in memory has to be told itself. With the request that it was served to, the risk control learns;
such reports come of errors alone, so they only make it stricter, and praise teaches nothing.
"""

from __future__ import annotations

import enum
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.entry import Answer, decode
from retrieval.answers.risk import Judgement
from retrieval.answers.risks import Learned, Risks
from retrieval.answers.store import AnswerStore
from retrieval.caching.keys import CacheKey, Purpose
from retrieval.caching.memory import MemoryFigures
from retrieval.caching.shared import SharedTier
from retrieval.errors import AnswerNotFound
from retrieval.scope import VectorSpace

_MOST_SERVES = 10_000
_MOST_BAD = 10_000


class Verdict(enum.Enum):
    """How good an answer was."""

    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Served:
    """An answer that served a question in other words, as it was judged for it."""

    key: CacheKey
    space: VectorSpace  # that it was judged in
    features: NDArray[np.float64]
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Reported:
    """What a verdict did."""

    removed: bool  # whether an answer was taken out of the cache
    learned: bool  # whether the risk control became stricter
    shared_available: bool = True  # whether it was taken out of the shared tier too; if not, that is tried again


@dataclass(frozen=True, slots=True)
class Located:
    """An answer, and where it is."""

    answer: Answer
    tier: str  # `memory`, `shared`
    age_s: float


def answer_key(tenant: str, collection: str, digest: bytes) -> CacheKey:
    """Returns the key of an answer by the digest that its caller was told; the tenant is that of the credential."""
    return CacheKey(Purpose.ANSWER, tenant, collection, digest)


class AnswerOperations:
    """Works on the answers of one process and of the tier behind it."""

    def __init__(
        self,
        store: AnswerStore,
        risks: Risks,
        tier: SharedTier | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._risks = risks
        self._tier = tier
        self._now_s = now_s
        self._serves: OrderedDict[tuple[str, str], Served] = OrderedDict()  # by tenant and request id
        self._undeleted: OrderedDict[CacheKey, float] = OrderedDict()  # reported, and still in the shared tier
        self._bad: OrderedDict[CacheKey, float] = OrderedDict()  # when each was reported, in seconds since the epoch

    @property
    def comparisons(self) -> Mapping[tuple[bool, bool], int]:
        """How many comparisons there were, by whether the kept answer had served and whether the new one agreed."""
        return self._risks.comparisons

    def learned(self, tenant: str) -> Iterator[tuple[str, Learned]]:
        """Yields the tenant's collections, by name, with what was learned of them."""
        return self._risks.of_tenant(tenant)

    def note_served(self, request_id: str, served: Served) -> None:
        """Remembers that an answer served a question in other words; of such serves the last 10,000 are known."""
        self._risks.count_served(served.space)
        self._serves[served.key.tenant, request_id] = served
        _keep_last(self._serves, _MOST_SERVES)

    def refuses(self, answer: Answer) -> bool:
        """Tells whether the answer was reported as bad after it was made, and so must not be taken back."""
        reported_at_s = self._bad.get(answer.key)
        return reported_at_s is not None and answer.stored_at_s <= reported_at_s

    async def report(self, key: CacheKey, verdict: Verdict, request_id: str = "") -> Reported:
        """Takes a verdict on an answer.

        Raises:
            AnswerNotFound: the tenant has no such answer, and none served that request.
        """
        served = self._serves.get((key.tenant, request_id))
        if served is not None and served.key != key:
            served = None
        here = await self._locate(key)
        if here is None and served is None:
            raise AnswerNotFound(key.hex)
        if verdict is Verdict.GOOD:
            return Reported(removed=False, learned=False)
        if served is not None:
            del self._serves[key.tenant, request_id]  # a second complaint about one serve is no second error
            self._risks.complain(served.space, key, served.judgement, served.features)
        gone = await self._ban(key)
        return Reported(here is not None, served is not None, gone)

    async def delete_again(self) -> None:
        """Takes reported answers out of the shared tier that could not be reached when they were reported."""
        if self._tier is not None and self._undeleted and await self._tier.delete(list(self._undeleted)):
            self._undeleted.clear()

    async def find(self, key: CacheKey) -> Located:
        """Returns an answer.

        Raises:
            AnswerNotFound: the tenant has no such answer.
        """
        located = await self._locate(key)
        if located is None:
            raise AnswerNotFound(key.hex)
        return located

    @property
    def figures(self) -> MemoryFigures:
        """How the answers of this process fare."""
        return self._store.figures

    def forget_where(self, chosen: Callable[[Answer], bool]) -> int:
        """Forgets all answers of this process that are chosen, and returns how many."""
        return self._store.remove_where(chosen)

    async def _locate(self, key: CacheKey) -> Located | None:
        kept = self._store.peek(key)
        if kept is not None:
            return Located(kept.answer, "memory", self._age_s(kept.answer))
        if self._tier is None:
            return None
        [stored] = (await self._tier.get_many([key])).values
        answer = None if stored is None else decode(stored.value, key)
        if answer is None or self.refuses(answer):
            return None
        return Located(answer, "shared", self._age_s(answer))

    async def _ban(self, key: CacheKey) -> bool:
        self._bad[key] = self._now_s()
        self._bad.move_to_end(key)
        _keep_last(self._bad, _MOST_BAD)
        self._store.remove(key)
        gone = self._tier is None or await self._tier.delete([key])
        if not gone:
            self._undeleted[key] = self._now_s()
            _keep_last(self._undeleted, _MOST_BAD)
        return gone

    def _age_s(self, answer: Answer) -> float:
        return max(0.0, self._now_s() - answer.stored_at_s)


def _keep_last(entries: OrderedDict[CacheKey, float] | OrderedDict[tuple[str, str], Served], most: int) -> None:
    while len(entries) > most:
        entries.popitem(last=False)
