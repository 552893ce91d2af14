"""Random steps over tenants, collections, replicas and a failing Redis; every reply is judged."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from bench._common.consistency.asking import Asker, Question, draw_question
from bench._common.consistency.engines import FactBackend
from bench._common.consistency.judge import Judge
from bench._common.consistency.replicas import Replica, flags_for
from bench._common.consistency.shared_redis import SharedRedis, running_shared_redis
from bench._common.consistency.truth import Clock, Truth
from bench._common.consistency.writing import Writer
from indexers.index import Catalog
from indexers.types import CollectionKey

KEYS = tuple(CollectionKey(tenant, name) for tenant in ("acme", "bell") for name in ("docs", "more"))
_TRIM_EVERY = 500
_TRIM_AFTER_NS = 60e9
_SETTINGS: tuple[tuple[str, Any], ...] = (
    ("cache.answers.similar", False),
    ("cache.answers.enabled", False),
    ("cache.answers.max_error_rate", 0.0),
    ("cache.answers.max_error_rate", 0.3),
    ("cache.answers.min_similarity", 0.95),
    ("cache.answers.ttl_s", 0.2),
    ("cache.policies", ({"tenant": "bell", "field": "site", "value": "south"},)),
    ("cache.policies", ({"collection": "more", "field": "site", "value": "north"},)),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is made of."""

    steps: int
    seed: int = 1
    trust_ms: int = 0
    slow_s: float = 0.0  # that some answers take
    builds: float = 0.0  # weight of building a generation, where a question weighs 80


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to."""

    steps: int
    seconds: float
    steps_per_s: float
    kinds: Mapping[str, int]
    hits: Mapping[str, int]
    outcomes: Mapping[str, int]  # calls that gave no reply, by why
    answers_made: int  # by the backend
    violations: Mapping[str, int]
    examples: Sequence[str]


class Simulation:
    """A world, and the steps that may be taken in it."""

    def __init__(self, plan: Plan, redis: SharedRedis, catalogs: Sequence[Catalog], random: Random) -> None:
        """Each catalog is a replica's; they may be one and the same."""
        self._plan = plan
        self._random = random
        self._redis = redis
        self._flags: dict[str, Any] = {**flags_for(redis.url), "cache.answers.trust_ms": plan.trust_ms}
        self._backend = FactBackend(plan.slow_s)
        self._replicas = [Replica(catalog, self._flags, self._backend) for catalog in catalogs]
        self._clock, self._truth = Clock(), Truth()
        self._judge = Judge(self._truth)
        self._asker = Asker(self._truth, self._clock, self._judge, self._flags)
        self._writer = Writer(self._truth, self._clock, random)
        self._kinds: Counter[str] = Counter()
        self._altered: dict[str, Any] = {}  # settings that were changed, with what they are to be again

    async def run(self) -> Report:
        """Takes the steps and returns what they came to."""
        started = time.perf_counter()
        for key in KEYS:
            await self._writer.create(self._replicas[0], key)
        for replica in self._replicas:
            await replica.available(10.0)
        while (taken := self._kinds.total()) < self._plan.steps:
            self._kinds.update(await self._step())
            if self._kinds.total() // _TRIM_EVERY > taken // _TRIM_EVERY:
                self._truth.trim(self._clock.now_ns() - _TRIM_AFTER_NS)
                self._redis.remember()
        await self._redis.heal()
        seconds = time.perf_counter() - started
        steps = self._kinds.total()
        return Report(
            steps=steps,
            seconds=seconds,
            steps_per_s=steps / seconds,
            kinds=_sorted(self._kinds),
            hits=_sorted(self._judge.hits),
            outcomes=_sorted(self._asker.outcomes),
            answers_made=self._backend.answers,
            violations=_sorted(self._judge.violations),
            examples=self._judge.examples,
        )

    async def close(self) -> None:
        """Ends the replicas."""
        for replica in self._replicas:
            await replica.close()

    async def _step(self) -> list[str]:
        """Takes one of the steps; a burst counts as many."""
        steps: dict[Callable[[], Awaitable[list[str]]], float] = {
            self._ask: 80.0,
            self._burst: 2.5,
            self._write: 4.0,
            self._recreate: 0.1,
            self._restart: 0.12,
            self._fail: 0.6 if not self._redis.faulty else 4.0,
            self._tamper: 0.6,
            self._build: self._plan.builds,
            self._set: 2.0 if self._altered else 0.2,
        }
        [chosen] = self._random.choices(list(steps), list(steps.values()))
        return await chosen()

    async def _ask(self) -> list[str]:
        return [await self._asker.ask(self._question())]

    async def _burst(self) -> list[str]:
        """Several at once, of the same or of different kinds, and perhaps a write among them."""
        same = self._question()
        calls: list[Awaitable[str]] = []
        for _ in range(self._random.randrange(3, 9)):
            question = same if self._random.random() < 0.6 else self._question()
            if self._random.random() < 0.2:
                calls.append(self._asker.give_up(question, self._random.randrange(30)))
            else:
                calls.append(self._asker.ask(question))
        if self._random.random() < 0.6:
            calls.insert(self._random.randrange(len(calls)), self._writer.change(self._replica(), self._key()))
        if self._random.random() < 0.02:
            calls.append(self._writer.recreate(self._replica(), self._key()))
        return [f"{kind} in a burst" for kind in await asyncio.gather(*calls)]

    async def _write(self) -> list[str]:
        return [await self._writer.change(self._replica(), self._key())]

    async def _recreate(self) -> list[str]:
        return [await self._writer.recreate(self._replica(), self._key())]

    async def _restart(self) -> list[str]:
        await self._replica().restart()
        return ["restart"]

    async def _fail(self) -> list[str]:
        if self._redis.faulty and self._random.random() < 0.7:
            await self._redis.heal()
            return ["redis healed"]
        return [f"redis {await self._redis.fail()}"]

    async def _build(self) -> list[str]:
        """Builds a generation of a collection, while questions go on and a write comes in between."""
        replica, key = self._replica(), self._key()
        index = await replica.catalog.open(key)
        building = asyncio.create_task(index.build())
        kinds = [await self._writer.change(replica, key)]
        while not building.done():
            kinds.append(await self._asker.ask(self._question()))
        await building
        return ["build", *(f"{kind} during a build" for kind in kinds)]

    async def _tamper(self) -> list[str]:
        return [f"redis {self._redis.tamper()}"]

    async def _set(self) -> list[str]:
        """Changes a setting in all replicas, or puts it back."""
        if self._altered:
            self._flags.update(self._altered)
            self._altered = {}
        else:
            path, value = self._random.choice(_SETTINGS)
            self._altered = {path: self._flags[path]}
            self._flags[path] = value
        for replica in self._replicas:
            replica.live.reload()
        return ["settings"]

    def _question(self) -> Question:
        return draw_question(self._random, self._replica(), self._key())

    def _replica(self) -> Replica:
        return self._random.choice(self._replicas)

    def _key(self) -> CollectionKey:
        return self._random.choice(KEYS)


@asynccontextmanager
async def simulation(plan: Plan, catalogs: Sequence[Catalog]) -> AsyncIterator[Simulation]:
    """Gives a simulation over catalogs that hold nothing yet, with a Redis of its own."""
    random = Random(plan.seed)
    async with running_shared_redis(random) as redis:
        made = Simulation(plan, redis, catalogs, random)
        try:
            yield made
        finally:
            await redis.heal()
            await made.close()


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts)}
