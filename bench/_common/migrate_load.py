"""Calls at fixed times while a collection moves: known questions, new ones and writes."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import grpc.aio

from headrace.v1 import retrieval_pb2
from headrace.v1.common_pb2 import STAGE_EMBED
from retrieval.client import Client, document

Span: TypeAlias = tuple[int, int]
"""From when to when, on the clock of time.monotonic_ns."""

_KNOWN_EVERY_S = 0.05
_NEW_EVERY_S = 0.2
_WRITE_EVERY_S = 0.5
_TOP_K = 10


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has ended."""

    planned_ns: int
    latency_ns: int  # from the planned time
    embed_ns: int = 0  # what its stage took in the server
    cached: bool = False  # whether its vectors were known


@dataclass
class Load:
    """What was called, and what has failed."""

    known: list[Call] = field(default_factory=list)
    new: list[Call] = field(default_factory=list)
    writes: list[Call] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class Calling:
    """Calls a server until it is told to end; a late call delays no later one's planned time."""

    def __init__(self, client: Client, collection: str, questions: Sequence[str]) -> None:
        self.load = Load()
        self._client = client
        self._collection = collection
        self._ended = asyncio.Event()
        known = itertools.cycle(questions)
        unseen = map("{} in place {}".format, itertools.cycle(questions), itertools.count())
        self._tasks = [
            asyncio.create_task(self._again(_KNOWN_EVERY_S, lambda: self._retrieve(next(known)), self.load.known)),
            asyncio.create_task(self._again(_NEW_EVERY_S, lambda: self._retrieve(next(unseen)), self.load.new)),
            asyncio.create_task(self._again(_WRITE_EVERY_S, self._write, self.load.writes)),
        ]
        self._written = itertools.count()

    async def end(self) -> Load:
        """Waits for what was begun."""
        self._ended.set()
        await asyncio.gather(*self._tasks)
        return self.load

    async def _again(self, every_s: float, call: Callable[[], Awaitable[tuple[int, bool]]], into: list[Call]) -> None:
        planned_ns = time.monotonic_ns()
        async with asyncio.TaskGroup() as calls:
            while not self._ended.is_set():
                await asyncio.sleep(max(0.0, (planned_ns - time.monotonic_ns()) / 1e9))
                calls.create_task(self._one(planned_ns, call, into))
                planned_ns += int(every_s * 1e9)

    async def _one(self, planned_ns: int, call: Callable[[], Awaitable[tuple[int, bool]]], into: list[Call]) -> None:
        try:
            embed_ns, cached = await call()
        except grpc.aio.AioRpcError as error:
            self.load.failures.append(f"{error.code().name}: {error.details()}")
            return
        into.append(Call(planned_ns, time.monotonic_ns() - planned_ns, embed_ns, cached))

    async def _retrieve(self, question: str) -> tuple[int, bool]:
        reply: retrieval_pb2.RetrieveResponse = await self._client.retrieve(self._collection, question, top_k=_TOP_K)
        if not reply.hits:
            self.load.failures.append(f"nothing was found for {question!r}")
        embed_ns = sum(one.wall_ns for one in reply.ledger.stages if one.stage == STAGE_EMBED)
        cached = any(one.cache == "query_embeddings" and one.hit for one in reply.ledger.caches)
        return embed_ns, cached

    async def _write(self) -> tuple[int, bool]:
        number = next(self._written)
        await self._client.upsert(self._collection, [document(f"written-{number}", f"What was written as {number}.")])
        return 0, False


def within(calls: Sequence[Call], spans: Sequence[Span]) -> list[Call]:
    """Returns the calls that were planned in one of the spans."""
    return [one for one in calls if any(begin <= one.planned_ns < end for begin, end in spans)]
