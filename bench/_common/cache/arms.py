"""The arms of the replay: the product's own request path with the answer cache set in several ways, over one index.

All arms read one collection and are asked each question in turn, so they see the same documents at the same time and
their times are comparable. Vectors of questions come from a memory that all share: the time to encode a question is in
no figure of an arm.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench._common.cache.oracle import NAME, Oracle
from bench._common.cache.questions import KnownQuestions
from bench._common.cache.verdicts import without_marks
from bench._common.engines import Encoders
from bench._common.pipelines import KEY
from bench._common.traces.events import Ask
from indexers.index import Catalog
from retrieval.admission import Admission
from retrieval.answers.risks import Learned
from retrieval.caching.memory import MemoryFigures
from retrieval.caching.open import open_caches
from retrieval.caching.shared import NoSharedTier
from retrieval.clock import StageClock
from retrieval.collection_encoders import OneEncoder
from retrieval.deadline import Deadline
from retrieval.dispatch.open import dispatcher_over
from retrieval.live import LiveSettings
from retrieval.pipeline import Engines, Pipeline
from retrieval.reuse import Reuse, ReuseReport
from retrieval.settings import Settings
from retrieval.settings.load import Loaded
from retrieval.speech import Delta
from retrieval.thresholds import Overrides, resolve
from retrieval.token_counters import RememberingCounter
from retrieval.types import Completed, GenerateRequest, RetrieveRequest

_PATIENCE_S = 60.0
_MAX_OUTPUT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Answered:
    """One request of one arm."""

    own_ns: int  # without the model's time, and without encoding the question
    reuse: Reuse
    made_for: int | None  # the place of the request whose answer served; None when none did
    text: str


@dataclass(slots=True)
class Arm:
    """One way to set the caches, with what came of it."""

    name: str
    settings: Settings
    oracle: Oracle
    pipeline: Pipeline
    engines: Engines
    answered: list[Answered] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    labels_before_first: int | None = None  # labels until the first question in other words was served
    asked_before_first: int = 0
    ended: list[tuple[int, int]] = field(default_factory=list)  # places: asked, and made; the evidence held no more
    _made: dict[str, int] = field(default_factory=dict)  # places of requests, by the key of the answer made for them

    @classmethod
    def open(cls, name: str, settings: Settings, catalog: Catalog, encoder: KnownQuestions, encoders: Encoders) -> Arm:
        """Opens a request path with caches of its own."""
        loaded = Loaded(settings, {}, None)
        live = LiveSettings(loaded, lambda: loaded)
        counter = RememberingCounter(encoders.dense.tokenization, knows_passages=True)
        oracle = Oracle(counter)
        caches = open_caches(live, NoSharedTier())
        engines = Engines(catalog, OneEncoder(encoder), caches, None, counter, dispatcher_over(oracle))
        bounds = settings.admission
        admission = Admission(bounds.max_concurrent, bounds.max_queued, bounds.max_wait_ms)
        return cls(name, settings, oracle, Pipeline(engines, admission, live), engines)

    async def ask(self, ask: Ask) -> None:
        """Puts one question, and notes what was served."""
        self.oracle.expect(ask)
        request = self._request(ask)
        started = time.perf_counter_ns()
        clock, deadline = StageClock(), Deadline.after(_PATIENCE_S)
        report, text = ReuseReport(), ""
        async for event in self.pipeline.generate(request, clock, deadline):
            if isinstance(event, Completed):
                report = event.reuse
            elif isinstance(event, Delta):
                text += event.text
        own_ns = time.perf_counter_ns() - started
        if report.shadowed:
            await self.oracle.idle()
        self._note(report, own_ns, without_marks(text))

    @property
    def learned(self) -> Learned:
        """What its risk control was taught."""
        operations = self.engines.caches.answers.operations
        return dict(operations.learned(KEY.tenant)).get(KEY.collection) or Learned()

    @property
    def memory(self) -> Mapping[str, MemoryFigures]:
        """Its caches."""
        caches = self.engines.caches
        figures = (caches.answers.operations.figures, caches.results.figures, caches.embeddings.figures)
        return {one.cache: one for one in figures}

    def _note(self, report: ReuseReport, own_ns: int, text: str) -> None:
        made_for = self._made.get(report.key)
        if report.stored:
            self._made[report.key] = len(self.answered)
        if report.reuse is Reuse.NONE:
            self.reasons[report.reason] += 1
            if report.reason == "evidence" and report.similarity == 1.0 and made_for is not None:
                self.ended.append((len(self.answered), made_for))
            self.answered.append(Answered(own_ns, report.reuse, None, text))
            return
        if report.reuse is Reuse.SIMILAR and self.labels_before_first is None:
            self.labels_before_first, self.asked_before_first = self.learned.labels, len(self.answered)
        self.answered.append(Answered(own_ns, report.reuse, self._made[report.key], text))

    def _request(self, ask: Ask) -> GenerateRequest:
        retrieve = RetrieveRequest(
            request_id=str(len(self.answered)),
            tenant=KEY.tenant,
            collection=KEY.collection,
            query=ask.text,
            filter=None,
            thresholds=resolve(self.settings, Overrides()),
        )
        return GenerateRequest(retrieve, NAME, _MAX_OUTPUT_TOKENS, 0.0)
