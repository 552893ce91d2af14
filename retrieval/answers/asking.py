"""A question as the answer cache sees it: whose it is, what its answer depends on, how it is worded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from retrieval.answers.question import normalise
from retrieval.caching.keys import CacheKey
from retrieval.scope import Scope, within
from retrieval.types import CacheControl, Thresholds


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """All that shapes an answer besides the question and the documents."""

    thresholds: Thresholds
    context_tokens: int
    tokenizer: str
    template: int
    instructions: str
    conversation: str  # what the model reads of earlier turns
    worded: str  # the question as the model reads it, where it was searched in other words
    max_cost: float  # the ceiling that held; 0 for none
    extractive_sentences: int
    backend: str  # that was asked for, by name or as the router's choice
    backends: tuple[tuple[str, str], ...]  # that may have answered, each with its model
    temperature: float
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that an answer is looked for."""

    question: str
    scope: Scope
    partition: CacheKey  # gate 1: answers elsewhere do not exist for it
    key: CacheKey  # of the answer to exactly this question, after normalisation
    result_key: CacheKey  # of the retrieval that is made for it
    read_at_ns: int  # when that retrieval's state was the newest, on the clock of time.monotonic_ns
    control: CacheControl


def asked_of(
    question: str, scope: Scope, shape: AnswerShape, result_key: CacheKey, read_at_ns: int, control: CacheControl
) -> Asked:
    """Returns the question with its keys."""
    partition = scope.partition(shape)
    return Asked(question, scope, partition, within(partition, _normal(question)), result_key, read_at_ns, control)


@lru_cache(maxsize=1024)
def _normal(question: str) -> str:
    """Remembers normal forms: what is served from the cache was mostly asked in these words before."""
    return normalise(question)
