"""What a request makes of the engines: one retrieval packed for one reader, and the answer that may come of it."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval.answers.asking import AnswerShape, Asked, asked_of
from retrieval.assembly import PassageCounter
from retrieval.assembly.template import TEMPLATE
from retrieval.caching.keys import CacheKey
from retrieval.generation.messages import conversation_text
from retrieval.routing.asking import Reading
from retrieval.stages.admit import Target
from retrieval.stages.ask import Inquiry
from retrieval.types import RetrieveRequest, Thresholds


@dataclass(frozen=True, slots=True)
class ResultShape:
    """All that shapes a result besides the question and the scope."""

    thresholds: Thresholds
    context_tokens: int
    tokenizer: str


@dataclass(frozen=True, slots=True)
class Task:
    """One retrieval: what is asked, of what, packed how."""

    request: RetrieveRequest
    target: Target
    context_tokens: int
    counter: PassageCounter
    result_key: CacheKey

    @property
    def shares(self) -> bool:
        """Whether it may use what was made for other requests, and they what is made for it."""
        return self.request.thresholds.use_cache


def task_of(request: RetrieveRequest, target: Target, reading: Reading) -> Task:
    """Returns the retrieval of a request."""
    shape = ResultShape(request.thresholds, reading.context_tokens, reading.counter.name)
    key = target.scope.result_key(request.query, shape)
    return Task(request, target, reading.context_tokens, reading.counter, key)


def answer_of(inquiry: Inquiry, task: Task, extractive_sentences: int) -> Asked | None:
    """Returns the question as the answer cache sees it; None when the request shares nothing."""
    request, asking = inquiry.request, inquiry.asking
    if not task.shares or request.tools is not None:
        return None
    retrieve, target = task.request, task.target
    shape = AnswerShape(
        thresholds=retrieve.thresholds,
        context_tokens=task.context_tokens,
        tokenizer=task.counter.name,
        template=TEMPLATE,
        instructions=asking.instructions,
        conversation=conversation_text(asking.conversation),
        worded=asking.question if asking.question != retrieve.query else "",
        max_cost=inquiry.max_cost,
        extractive_sentences=extractive_sentences,
        backend=request.backend,
        backends=inquiry.backends,
        temperature=request.temperature,
        max_output_tokens=request.max_output_tokens,
    )
    return asked_of(retrieve.query, target.scope, shape, task.result_key, target.read_at_ns, retrieve.cache_control)
