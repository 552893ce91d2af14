"""The replay from a set's folder to its report: traces, arms, the baseline tuned on other traces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench._common.beir import BeirSet
from bench._common.cache.figures import OUTPUT_TOKENS_PER_S, PROMPT_TOKENS_PER_S, Baseline, figures_of, fixed_figures
from bench._common.cache.fixed import THRESHOLDS, Cosines, false_share, replay_fixed, tuned_threshold, verdicts_of
from bench._common.cache.questions import KnownQuestions
from bench._common.cache.replay import Replayed, replay
from bench._common.cache.report import CurvePoint, ReplayReport
from bench._common.cache.standing import Standing, needed_part
from bench._common.cache.verdicts import Requests
from bench._common.engines import Encoders, open_encoders
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import say
from bench._common.traces.events import Ask, Law, Trace
from bench._common.traces.judging import Verdict
from bench._common.traces.making import make_trace
from bench._common.traces.questions import read_trace_questions
from retrieval.settings import Settings

_TUNING_SEEDS = 1_000  # what is added to a seed, so that the baseline is tuned on other traces
_TIMED_QUESTIONS = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """What is replayed."""

    folder: Path  # of the set
    seeds: Sequence[int]  # of the traces, one after the other
    law: Law
    rates: Sequence[float]  # `max_error_rate` of each of our arms
    target: float  # false hits per hit that the baseline is tuned to
    others: int  # documents that no trace speaks of
    encodings: Path  # where vectors are kept


async def replay_set(plan: Plan, settings: Settings) -> ReplayReport:
    """Replays the traces of a plan.

    Raises:
        FileNotFoundError: a file of the set is missing.
        ValueError: the set holds too few questions.
    """
    read, questions = read_trace_questions(plan.folder)
    traces = [make_trace(read, questions, plan.law, seed) for seed in plan.seeds]
    tuning = [make_trace(read, questions, plan.law, seed + _TUNING_SEEDS) for seed in plan.seeds]
    source = replace(read, documents=tuple(needed_part(read.documents, traces, plan.others)))
    async with open_encoders(settings, plan.encodings) as encoders:
        threshold = await _tuned(read, tuning, encoders, plan.target)
        say(f"the baseline's threshold: {threshold:g}")
        replayed = await replay(source, traces, arms_of(settings, plan.rates), encoders)
        question = await _encoding(encoders, list(replayed.cosines.places))
    return _report(plan, replayed, threshold, question)


def arms_of(settings: Settings, rates: Iterable[float]) -> Mapping[str, Settings]:
    """Returns the settings of each arm: without any cache, with equal questions alone, and with each of the bounds."""
    cache = settings.cache
    sizes = dict.fromkeys(("embeddings_bytes", "token_codes_bytes", "pair_scores_bytes", "results_bytes"), 0)
    off = cache.model_copy(update={**sizes, "answers": cache.answers.model_copy(update={"enabled": False})})
    arms = {"none": settings.model_copy(update={"cache": off}), "exact": _with_answers(settings, similar=False)}
    return arms | {f"ours, {rate:.1%}": _with_answers(settings, max_error_rate=rate) for rate in rates}


def stamped_asks(documents: BeirSet, traces: Iterable[Trace]) -> list[Ask]:
    """Returns the requests of traces with the numbers of `Standing`, without an index."""
    standing, asks = Standing(documents.documents), list[Ask]()
    for trace in traces:
        standing.start(trace)
        for event in trace.events:
            if isinstance(event, Ask):
                asks.append(standing.stamped(event))
            else:
                standing.apply(event)
    return asks


def curve_of(requests: Requests, cosines: Cosines) -> list[CurvePoint]:
    """Returns the baseline at every threshold."""
    return [
        _point(threshold, verdicts_of(requests, replay_fixed(requests.asks, cosines, threshold)))
        for threshold in THRESHOLDS
    ]


def _with_answers(settings: Settings, **changed: object) -> Settings:
    answers = settings.cache.answers.model_copy(update=changed)
    return settings.model_copy(update={"cache": settings.cache.model_copy(update={"answers": answers})})


async def _tuned(read: BeirSet, traces: Sequence[Trace], encoders: Encoders, target: float) -> float:
    asks, questions = stamped_asks(read, traces), KnownQuestions(encoders.cached)
    texts = list(dict.fromkeys(ask.text for ask in asks))
    await questions.learn(texts)
    vectors = np.stack([questions.vector(text) for text in texts])
    return tuned_threshold(asks, Cosines(texts, vectors), target)


async def _encoding(encoders: Encoders, texts: Sequence[str]) -> Quantiles:
    timed = [await encoders.dense.encode_query(text, None) for text in texts[:_TIMED_QUESTIONS]]
    return quantiles([one.queue_ns + one.compute_ns for one in timed])


def _point(threshold: float, verdicts: Sequence[Verdict | None]) -> CurvePoint:
    hits = [one for one in verdicts if one is not None]
    right = sum(one is Verdict.RIGHT for one in hits)
    share = len(hits) / max(1, len(verdicts))
    return CurvePoint(threshold, share, right / len(hits) if hits else 1.0, false_share(verdicts))


def _report(plan: Plan, replayed: Replayed, threshold: float, question: Quantiles) -> ReplayReport:
    arms, requests, cosines = replayed.arms, replayed.requests, replayed.cosines
    baseline = Baseline(threshold, replay_fixed(requests.asks, cosines, threshold), arms[0], cosines)
    fixed = [fixed_figures(requests, baseline, retrieves=retrieves) for retrieves in (False, True)]
    figures = [figures_of(arm, requests) for arm in arms]
    return ReplayReport(
        set_name=plan.folder.name,
        seeds=list(plan.seeds),
        target=plan.target,
        threshold=threshold,
        requests=len(requests.asks),
        prompt_tokens_per_s=PROMPT_TOKENS_PER_S,
        output_tokens_per_s=OUTPUT_TOKENS_PER_S,
        question=question,
        arms=[*figures[:2], *fixed, *figures[2:]],
        curve=curve_of(requests, cosines),
    )
