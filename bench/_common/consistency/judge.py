"""Judges every reply: whose it is, how old it is, and whether what it says of itself is consistent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from bench._common.consistency.engines import UNKNOWN, mark_of, said_in
from bench._common.consistency.facts import Topic, statement, topic_of
from bench._common.consistency.truth import Asked, Truth
from retrieval.answers.question import normalise
from retrieval.reuse import Reuse
from retrieval.speech import FinishReason
from retrieval.types import Completed, Hit, Retrieved, RetrieveRequest

_MOST_KEPT = 20


@dataclass(frozen=True, slots=True)
class Reply:
    """What a request got; `completed` is None for Retrieve."""

    request: RetrieveRequest
    asked: Asked
    retrieved: Retrieved
    answer: str = ""
    completed: Completed | None = None
    trust_ms: int = 0  # of the settings meanwhile, the larger one


@dataclass(frozen=True, slots=True)
class _Made:
    """For whom an answer was made first."""

    partition: tuple[object, ...]
    question: str
    stored: bool


class Judge:
    """Counts hits and violations."""

    def __init__(self, truth: Truth) -> None:
        self.hits: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        self.examples: list[str] = []
        self._truth = truth
        self._made: dict[int, _Made] = {}

    def condemn(self, kind: str, what: object) -> None:
        """Counts a violation and keeps the first ones."""
        self.violations[kind] += 1
        if len(self.examples) < _MOST_KEPT:
            self.examples.append(f"{kind}: {what}")

    def judge(self, reply: Reply) -> None:
        """Judges a reply."""
        asked, completed = reply.asked, reply.completed
        trusted = completed is not None and completed.reuse.evidence is not None and completed.reuse.evidence.trusted
        if trusted and not reply.trust_ms:
            self.condemn("gates", f"trusted without trust {completed}")
        if trusted:
            asked = replace(asked, begun_ns=asked.begun_ns - reply.trust_ms * 1e6)
            self.hits["answers trusted"] += 1
        for use in reply.retrieved.ledger.caches:
            self.hits[f"{use.cache} {use.tier or 'miss'}"] += 1
        topic = topic_of(reply.request.query)
        self._judge_hits(asked, topic, reply.retrieved.hits)
        if completed is not None:
            self._judge_answer(asked, topic, reply, completed)
            self._judge_report(reply, completed)

    def _judge_hits(self, asked: Asked, topic: Topic, hits: tuple[Hit, ...]) -> None:
        for hit in hits:
            passage = hit.passage
            if not self._truth.may_read(asked, passage):
                self.condemn(self._truth.fault(asked.key, passage.text), (asked, passage.document_id, passage.text))
        told = any(topic.phrase in hit.passage.text for hit in hits)
        if not told and not self._truth.may_say_nothing(asked, topic):
            self.condemn("stale", ("nothing found", asked, topic))

    def _judge_answer(self, asked: Asked, topic: Topic, reply: Reply, completed: Completed) -> None:
        if completed.finish_reason is FinishReason.NO_EVIDENCE:
            if reply.answer:
                self.condemn("answer", ("text without evidence", reply.answer))
            return
        said = said_in(reply.answer)
        if said == UNKNOWN:
            if not self._truth.may_say_nothing(asked, topic):
                self.condemn("stale", ("nothing known", asked, topic, completed.reuse))
        elif not self._truth.may_quote(asked, topic, said):
            self.condemn(self._truth.fault(asked.key, said), (asked, said, completed.reuse))
        self._judge_citations(said, reply, completed)

    def _judge_citations(self, said: str, reply: Reply, completed: Completed) -> None:
        sources = {one.number: one.passage for one in reply.retrieved.context.citations}
        for mark in completed.citations:
            source = sources.get(mark.number)
            if source is None or source.document_id != mark.document_id:
                self.condemn("citation", ("cites what is not there", mark, reply.answer))
            elif said not in (UNKNOWN, statement(source.title, source.text)):
                self.condemn("citation", ("the source does not say it", mark, reply.answer, source.text))
            if reply.answer[mark.start : mark.end] != f"[{mark.number}]":
                self.condemn("citation", ("points elsewhere", mark, reply.answer))
        if not completed.citations:
            self.condemn("citation", ("none", reply.answer, completed.reuse))

    def _judge_report(self, reply: Reply, completed: Completed) -> None:
        report, control = completed.reuse, reply.request.cache_control
        self.hits[f"answers {report.reuse.value} {report.tier}".rstrip()] += 1
        if report.reuse is Reuse.NONE:
            self.hits[f"answers none: {report.reason}"] += 1
            consistent = bool(report.reason) and not (report.stored and control.no_store) and not report.shadowed
        else:
            evidence, equal = report.evidence, report.reuse is Reuse.EQUAL
            young = control.max_age_s is None or report.age_ms <= 1e3 * control.max_age_s + 1
            consistent = (
                not report.reason
                and not report.stored
                and evidence is not None
                and evidence.holds
                and report.tier in ("memory", "shared")
                and (report.similarity == 1.0 and report.risk is None if equal else report.risk is not None)
                and young
                and not control.no_cache
                and completed.usage.output_tokens == 0
            )
        if not consistent:
            self.condemn("gates", (report, control))
        if completed.finish_reason is FinishReason.STOP:
            self._judge_origin(reply, completed)

    def _judge_origin(self, reply: Reply, completed: Completed) -> None:
        """Whoever else gets an answer must be of the partition that it was made for, and it must have been kept."""
        request, reuse = reply.request, completed.reuse.reuse
        mark, question = mark_of(reply.answer), normalise(request.query)
        partition = (request.tenant, request.collection, request.data_policy, request.filter)
        if mark is None:
            self.condemn("answer", ("no mark", reply.answer))
            return
        made = self._made.get(mark)
        if made is None or (reuse is Reuse.NONE and completed.reuse.stored):
            self._made[mark] = _Made(partition, question, completed.reuse.stored)
        if made is None:
            if reuse is not Reuse.NONE:
                self.condemn("origin", ("from nowhere", reply.answer, completed.reuse))
            return
        if made.partition != partition:
            self.condemn("cross-partition", (made, partition, completed.reuse))
        if reuse is not Reuse.NONE and not made.stored:
            self.condemn("origin", ("was not to be kept", made, completed.reuse))
        if (made.question == question) == (reuse is Reuse.SIMILAR):
            self.condemn("origin", ("another question", made, question, completed.reuse))
