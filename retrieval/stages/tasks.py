"""What a request makes of the engines: one retrieval packed for one reader, and the answer that may come of it."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval.answers.asking import AnswerShape, Asked, asked_of
from retrieval.assembly import PassageCounter, generation_budget
from retrieval.assembly.template import TEMPLATE
from retrieval.caching.keys import CacheKey
from retrieval.generation.backend import Backend
from retrieval.settings.generation import GenerationSettings
from retrieval.stages.admit import Target
from retrieval.types import GenerateRequest, RetrieveRequest, Thresholds


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


def task_of(request: RetrieveRequest, target: Target, context_tokens: int, counter: PassageCounter) -> Task:
    """Returns the retrieval of a request."""
    shape = ResultShape(request.thresholds, context_tokens, counter.name)
    return Task(request, target, context_tokens, counter, target.scope.result_key(request.query, shape))


def answer_of(request: GenerateRequest, task: Task, backend: Backend, settings: GenerationSettings) -> Asked | None:
    """Returns the question as the answer cache sees it; None when the request shares nothing."""
    if not task.shares:
        return None
    retrieve = request.retrieve
    shape = AnswerShape(
        thresholds=retrieve.thresholds,
        context_tokens=task.context_tokens,
        tokenizer=task.counter.name,
        template=TEMPLATE,
        instructions=settings.instructions,
        extractive_sentences=settings.extractive_sentences,
        backend=backend.name,
        model=backend.model,
        temperature=request.temperature,
        max_output_tokens=request.max_output_tokens,
    )
    target = task.target
    return asked_of(retrieve.query, target.scope, shape, task.result_key, target.read_at_ns, retrieve.cache_control)


def context_budget(request: GenerateRequest, backend: Backend, instructions: str) -> int:
    """Returns the tokens of context that fit into a backend's window beside instructions, question and answer."""
    retrieve = request.retrieve
    return generation_budget(
        backend.context_window_tokens,
        instructions,
        retrieve.query,
        request.max_output_tokens,
        backend.counter,
        retrieve.thresholds.context_tokens,
    )
