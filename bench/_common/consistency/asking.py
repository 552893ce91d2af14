"""The questions of the simulation: sent to a replica, answered, judged; some are given up midway."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from bench._common.consistency.facts import SITES, TOPICS, WORDINGS
from bench._common.consistency.judge import Judge, Reply
from bench._common.consistency.replicas import Replica
from bench._common.consistency.truth import Asked, Clock, Truth
from encoders.errors import EncoderError
from indexers.errors import CollectionNotFound, IndexerError
from indexers.filters import Filter, MatchAny
from indexers.types import CollectionKey
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.errors import NotCached, RetrievalError
from retrieval.speech import Delta
from retrieval.thresholds import Overrides, resolve
from retrieval.types import CacheControl, Completed, GenerateRequest, Retrieved, RetrieveRequest

POLICIES = ("open", "secret")
_PATIENCE_S = 30.0
_CONTROLS = (
    CacheControl(no_cache=True),
    CacheControl(no_store=True),
    CacheControl(only_if_cached=True),
    CacheControl(max_age_s=0.05),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A request before it is sent: who asks what of which replica."""

    replica: Replica
    request: RetrieveRequest
    site: str | None
    generates: bool


class Asker:
    """Asks."""

    def __init__(self, truth: Truth, clock: Clock, judge: Judge, flags: Mapping[str, Any]) -> None:
        self._truth = truth
        self._clock = clock
        self._judge = judge
        self._flags = flags
        self.outcomes: dict[str, int] = {}

    async def ask(self, question: Question) -> str:
        """Asks one question and judges the reply; returns what kind of call it was."""
        request = question.request
        key = CollectionKey(request.tenant, request.collection)
        asked = Asked(key, question.site, self._clock.now_ns(), 0.0)
        trust_ms = self._trust_ms()
        try:
            reply = await (self._generate(question, asked) if question.generates else self._retrieve(question, asked))
        except NotCached:
            self._note("not cached", permitted=request.cache_control.only_if_cached, what=request)
        except CollectionNotFound as error:
            asked = replace(asked, ended_ns=self._clock.now_ns())
            self._note("collection not found", permitted=self._truth.was_absent(asked), what=error)
        except (RetrievalError, IndexerError, EncoderError) as error:
            self._note(type(error).__name__, permitted=False, what=repr(error))
        else:
            self._judge.judge(replace(reply, trust_ms=max(trust_ms, self._trust_ms())))
        return "generate" if question.generates else "retrieve"

    async def give_up(self, question: Question, turns: int) -> str:
        """Asks one question and leaves after some turns of the event loop, unless the answer is there by then."""
        task = asyncio.create_task(self.ask(question))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return "given up" if task.cancelled() else "too late to give up"

    async def _retrieve(self, question: Question, asked: Asked) -> Reply:
        pipeline = question.replica.pipeline
        retrieved = await pipeline.retrieve(question.request, StageClock(), Deadline.after(_PATIENCE_S))
        return Reply(question.request, replace(asked, ended_ns=self._clock.now_ns()), retrieved)

    async def _generate(self, question: Question, asked: Asked) -> Reply:
        request = GenerateRequest(question.request, "facts", max_output_tokens=100, temperature=0.0)
        retrieved: Retrieved | None = None
        completed: Completed | None = None
        pieces: list[str] = []
        stream = question.replica.pipeline.generate(request, StageClock(), Deadline.after(_PATIENCE_S))
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event, Delta):
                    pieces.append(event.text)
                elif isinstance(event, Retrieved):
                    retrieved = event
                else:
                    completed = event
        assert retrieved is not None
        assert completed is not None
        asked = replace(asked, ended_ns=self._clock.now_ns())
        return Reply(question.request, asked, retrieved, "".join(pieces), completed)

    def _trust_ms(self) -> int:
        return int(self._flags["cache.answers.trust_ms"])

    def _note(self, outcome: str, *, permitted: bool, what: object) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if not permitted:
            self._judge.condemn("error", what)


def draw_question(random: Random, replica: Replica, key: CollectionKey) -> Question:
    """Draws a question: a few topics are asked for often, and most callers ask nothing of the caches."""
    place = min(int(random.paretovariate(1.1)) - 1, len(TOPICS) - 1)
    site = random.choice((None, None, None, *SITES))
    request = RetrieveRequest(
        request_id=f"r{random.randrange(10**9)}",
        tenant=key.tenant,
        collection=key.collection,
        query=TOPICS[place].question(random.randrange(len(WORDINGS))),
        filter=None if site is None else Filter(must=(MatchAny("site", (site,)),)),
        thresholds=resolve(replica.live.current, Overrides(cache=random.random() > 0.02)),
        cache_control=random.choice(_CONTROLS) if random.random() < 0.08 else CacheControl(),
        data_policy=random.choice((POLICIES[0],) * 4 + (POLICIES[1],)),
    )
    return Question(replica, request, site, generates=random.random() < 0.75)
