"""Carries out the steps of a job on its documents. A result is kept with the job, by what was asked of which text.

So a run that was broken off goes on where it was, an unchanged text is never asked about again, and a changed prompt,
label or model asks anew. A step without room in its budget, or without a usable answer, leaves its document as it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from encoders.types import TokenCounter
from indexers.chunking.blocks import find_blocks
from indexers.errors import InvalidInput
from indexers.jobs.enriching import Enriched
from indexers.jobs.report import EnrichmentUse
from indexers.jobs.spec import EnrichmentSpec
from indexers.jobs.state import JobKey
from indexers.jobs.store import JobStore
from indexers.types import Document, FieldType, Note, Scalar
from indexers.values import coerce_value
from retrieval.enrichment import tasks
from retrieval.enrichment.asking import TextModel, Unusable
from retrieval.enrichment.budget import Budget

_AT_ONCE = 4
_REVISION = 1  # raised whenever the same step would ask something else


class JobEnricher:
    """All steps of one job, in order."""

    def __init__(
        self,
        steps: Sequence[EnrichmentSpec],
        model: TextModel,
        counter: TokenCounter,
        memory: tuple[JobStore, JobKey],
        fields: Mapping[str, FieldType],
    ) -> None:
        """`counter` measures how much of a text a call sees; `memory` is where results are kept."""
        self._steps = tuple(steps)
        self._model = model
        self._counter = counter
        self._store, self._key = memory
        self._fields = fields
        self._budgets = {step.name: Budget.of(step) for step in steps}
        self._free = asyncio.Semaphore(_AT_ONCE)

    @property
    def fingerprint(self) -> str:
        """Names everything that shapes results besides the document."""
        digest = hashlib.blake2b(digest_size=8)
        for step in self._steps:
            digest.update(_asked(step).encode() + b"\0")
        return digest.hexdigest()

    async def enrich(self, document: Document) -> Enriched:
        """Returns the document with what the steps add."""
        warnings: list[str] = []
        for step in self._steps:
            for start, end in _parts(step, document, self._counter):
                try:
                    result = await self._result(step, document, document.text[start:end])
                    document = self._with(step, document, result, (start, end))
                except (Unusable, InvalidInput) as error:
                    warnings.append(f"{step.name}: {error}")
        return Enriched(document, tuple(warnings))

    def figures(self) -> tuple[EnrichmentUse, ...]:
        """Returns what each step has done and used so far."""
        return tuple(budget.use for budget in self._budgets.values())

    async def _result(self, step: EnrichmentSpec, document: Document, text: str) -> tasks.Result:
        digest = hashlib.blake2b(f"{_asked(step)}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16)
        name, budget = f"enrich/{step.name}/{digest.hexdigest()}", self._budgets[step.name]
        async with self._free:
            kept = (await self._store.recall(self._key, [name])).get(name)
            if kept is not None:
                budget.remember()
                return _loaded(kept)
            if not budget.book():
                raise Unusable("the budget of this run is used up")
            said = None
            try:
                said = await self._model.ask(
                    tasks.instructions(step), tasks.question(text), document, step.backend, step.output_tokens
                )
            finally:
                budget.settle(said)
            result = tasks.read(step, said.text)
            await self._store.remember(self._key, name, json.dumps(result, ensure_ascii=False).encode())
            return result

    def _with(self, step: EnrichmentSpec, document: Document, result: tasks.Result, span: tuple[int, int]) -> Document:
        if step.into == "search_text":
            lines = [result] if isinstance(result, str) else result.values() if isinstance(result, Mapping) else result
            text = "\n".join(lines)
            return replace(document, notes=(*document.notes, Note(*span, text))) if text else document
        named = result if isinstance(result, Mapping) else {step.field or step.name: result}
        added = {name: self._coerced(name, value) for name, value in named.items() if value}
        return replace(document, metadata={**document.metadata, **added})

    def _coerced(self, name: str, value: str | tuple[str, ...]) -> Scalar | tuple[Scalar, ...]:
        """Raises: TypeMismatch: the model's value is not of the declared type."""
        declared = self._fields.get(name)
        if declared is None:
            return value
        if isinstance(value, tuple):
            return tuple(coerce_value(one, declared, f"metadata.{name}") for one in value)
        return coerce_value(value, declared, f"metadata.{name}")


def _asked(step: EnrichmentSpec) -> str:
    """Names what a step asks, of whom, and what becomes of it."""
    kinds = f"{_REVISION}/{step.backend}/{step.over}/{step.into}/{step.field}/{step.input_tokens}"
    return f"{kinds}/{tasks.instructions(step)}"


def _parts(step: EnrichmentSpec, document: Document, counter: TokenCounter) -> Iterator[tuple[int, int]]:
    """Yields the spans that a step is asked about: the beginning of the document, or all of it piece by piece."""
    start = end = 0
    for block in find_blocks(document.text, document.format):
        wider = (start if end else block.start, block.end)
        if counter.count(document.text[wider[0] : wider[1]]) <= step.input_tokens:
            start, end = wider
            continue
        if end:
            yield start, end
            if step.over == "document":
                return
        start, end = block.start, _cut(document.text, block.start, block.end, step.input_tokens, counter)
    if end:
        yield start, end


def _cut(text: str, start: int, end: int, limit: int, counter: TokenCounter) -> int:
    """Returns where a block that is too long for one call is cut."""
    while counter.count(text[start:end]) > limit and end - start > 1:
        end = start + (end - start) * 3 // 4
    return end


def _loaded(kept: bytes) -> tasks.Result:
    result = json.loads(kept)
    return tuple(result) if isinstance(result, list) else result
