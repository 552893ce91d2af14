"""Opens the enricher of a job, with the backends of the settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from indexers.errors import JobError
from indexers.jobs.state import Run
from indexers.jobs.store import JobStore
from indexers.types import FieldType
from retrieval.dispatch.open import open_dispatcher
from retrieval.enrichment.asking import TextModel
from retrieval.enrichment.enricher import JobEnricher
from retrieval.generation.open import open_backends
from retrieval.routing.router import Router
from retrieval.settings import Settings
from retrieval.token_counters import BUNDLED, open_counter


@asynccontextmanager
async def enricher_of(
    settings: Settings, run: Run, store: JobStore, fields: Mapping[str, FieldType]
) -> AsyncIterator[JobEnricher | None]:
    """Gives the enricher of a run; None when its job has no such steps.

    Raises:
        JobError: no backend writes, or a step names one that is not configured.
    """
    steps, generation = run.spec.enrich, settings.generation
    if not steps:
        yield None
        return
    names = {backend.name for backend in generation.backends if backend.kind != "extractive"}
    if not names:
        raise JobError("the job has steps that ask a model, and no backend is configured that is one")
    if unknown := sorted({step.backend for step in steps if step.backend} - names):
        raise JobError(
            f"enrich.backend: {unknown[0]!r} is no configured backend that writes ({', '.join(sorted(names))})"
        )
    counter = open_counter(BUNDLED)
    servers = open_backends(generation, counter, None, None, settings.data.folder / "models")
    dispatcher = open_dispatcher(servers, lambda: generation)
    try:
        router = Router(dispatcher.services, lambda: generation)
        model = TextModel(router, dispatcher, lambda: generation, run.key.tenant, run.spec.collection)
        yield JobEnricher(steps, model, counter, (store, run.key), fields)
    finally:
        await dispatcher.close()
