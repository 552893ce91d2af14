"""The composition root: the one place that constructs the parts of a server and fits them together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from encoders.open import ScheduledDenseEncoder
from encoders.scheduler import TokenScheduler
from encoders.splade_open import ScheduledSparseEncoder
from encoders.types import TextKind, WorkClass
from indexers.index import Catalog
from indexers.types import CollectionKey
from rerank.cross_encoder import ScheduledCrossEncoder
from retrieval.admission import Admission
from retrieval.answers.remembering import LearnedFiles, saving
from retrieval.caching.caches import Caches
from retrieval.caching.open import open_caches, open_shared_tier
from retrieval.caching.operating import Chosen, forget
from retrieval.dispatch.open import open_dispatcher
from retrieval.generation.open import open_backends
from retrieval.identity import Authenticator
from retrieval.jobs.server_side import ServerJobs, server_jobs
from retrieval.live import LiveSettings
from retrieval.migrating.desk import MigrationDesk
from retrieval.pipeline import Engines, Pipeline
from retrieval.server.convert.models import ServedModel
from retrieval.server.draining import Drain
from retrieval.server.encoder_pool import EncoderPool
from retrieval.server.engines import (
    IndexerOf,
    catalog_of,
    encoders_of,
    indexer_of,
    measurements_of,
    open_encoder,
    open_reranker,
    open_sparse_encoder,
    scheduler_of,
)
from retrieval.server.interceptor import Guard
from retrieval.server.limits import Limits
from retrieval.server.migrations import DocumentEncoders, migration_desk
from retrieval.server.services.admin import About, AdminService
from retrieval.server.services.encoding import Counters, EncodingService
from retrieval.server.services.index import IndexService
from retrieval.server.services.retrieval import RetrievalService
from retrieval.settings import Settings
from retrieval.telemetry.backends import BackendCollector
from retrieval.telemetry.caches import CacheCollector
from retrieval.telemetry.metrics import Metrics
from retrieval.token_counters import BUNDLED, BUNDLED_MODEL, open_counter


@dataclass(frozen=True, slots=True)
class App:
    """A server's parts, ready to be bound to an address."""

    pipeline: Pipeline
    engines: Engines
    encoder: ScheduledDenseEncoder  # the configured one
    scheduler: TokenScheduler
    models: Sequence[ServedModel]
    indexer_of: IndexerOf
    metrics: Metrics
    guard: Guard
    drain: Drain
    retrieval: RetrievalService
    encoding: EncodingService
    index: IndexService
    admin: AdminService
    authenticator: Authenticator
    jobs: ServerJobs
    migrations: MigrationDesk

    async def warm_up(self) -> None:
        """Encodes one query, so that the first caller does not wait for what happens once."""
        await self.encoder.encode(["warm up"], TextKind.QUERY, WorkClass.ONLINE, None)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What was opened and has to be closed."""

    scheduler: TokenScheduler
    encoder: ScheduledDenseEncoder
    encoders: EncoderPool
    sparse: ScheduledSparseEncoder | None
    reranker: ScheduledCrossEncoder | None
    catalog: Catalog


@asynccontextmanager
async def build(live: LiveSettings) -> AsyncIterator[App]:
    """Opens everything that the settings name, and closes it in the reverse order.

    Raises:
        ModelError: a model cannot be used.
        DataFolderLocked: another process holds the data folder.
    """
    settings = live.current
    async with AsyncExitStack() as stack:
        scheduler = stack.enter_context(scheduler_of(settings))
        memory = measurements_of(settings)
        encoder = await asyncio.to_thread(open_encoder, settings, scheduler, memory)
        reranker = await asyncio.to_thread(open_reranker, settings, scheduler, memory)
        sparse = await asyncio.to_thread(open_sparse_encoder, settings, scheduler)
        encoders = encoders_of(settings, scheduler, memory, encoder, sparse)
        catalog = await stack.enter_async_context(catalog_of(settings, encoders))
        opened = _Opened(scheduler, encoder, encoders, sparse, reranker, catalog)
        shared = open_shared_tier(settings.cache.redis)
        stack.push_async_callback(shared.close)
        caches = open_caches(live, shared, LearnedFiles(settings.data.folder / "learned"))
        await stack.enter_async_context(saving(caches.answers))
        engines = _engines(opened, live, caches)
        stack.push_async_callback(engines.dispatcher.close)
        jobs = await stack.enter_async_context(server_jobs(settings, catalog))
        documents = DocumentEncoders(settings, jobs.store, scheduler, sparse)
        moved = partial(_forget, caches)
        desk = migration_desk(lambda: live.current, catalog, encoders, documents, sparse, moved)
        app = _app(opened, engines, live, jobs, await stack.enter_async_context(desk))
        stack.push_async_callback(app.pipeline.close)
        yield app


def _engines(opened: _Opened, live: LiveSettings, caches: Caches) -> Engines:
    settings, encoder = live.current, opened.encoder
    same_tokenizer = settings.context.tokenizer == BUNDLED and settings.encoders.dense.model == BUNDLED_MODEL
    counter = open_counter(settings.context.tokenizer, knows_passages=same_tokenizer)
    sentences = lambda: live.current.generation.extractive_sentences  # noqa: E731
    servers = open_backends(settings.generation, counter, encoder, sentences, settings.data.folder / "models")
    return Engines(
        catalog=opened.catalog,
        encoders=opened.encoders,
        caches=caches,
        reranker=opened.reranker,
        counter=counter,
        dispatcher=open_dispatcher(servers, lambda: live.current.generation),
        sparse=opened.sparse,
        give_way=opened.scheduler.give_way,
    )


def _app(opened: _Opened, engines: Engines, live: LiveSettings, jobs: ServerJobs, migrations: MigrationDesk) -> App:
    settings = live.current
    pipeline = Pipeline(engines, _admission(live), live)
    indexers = indexer_of(settings.chunking, opened.encoders.of, opened.scheduler, opened.sparse)
    metrics, drain, models = Metrics(), Drain(), _models(opened)
    metrics.registry.register(CacheCollector(engines.caches))
    metrics.registry.register(BackendCollector(engines.dispatcher.stats))
    metrics.registry.register(jobs.collector)
    authenticator = Authenticator(settings.auth)
    counters = Counters(opened.encoder.tokenization, engines.counter)
    return App(
        pipeline=pipeline,
        engines=engines,
        encoder=opened.encoder,
        scheduler=opened.scheduler,
        models=models,
        indexer_of=indexers,
        metrics=metrics,
        guard=Guard(authenticator, Limits(live), metrics, drain),
        drain=drain,
        retrieval=RetrievalService(pipeline, engines.caches.answers.operations, live),
        encoding=EncodingService(opened.encoder, opened.reranker, counters),
        index=IndexService(opened.catalog, indexers, partial(_forget, engines.caches), jobs.desk, migrations),
        admin=AdminService(
            _about(opened.scheduler, models, list(engines.dispatcher.services)), opened.catalog, engines.caches, live
        ),
        authenticator=authenticator,
        jobs=jobs,
        migrations=migrations,
    )


async def _forget(caches: Caches, key: CollectionKey) -> None:
    await forget(caches, Chosen(key.tenant, key.collection))


def _admission(live: LiveSettings) -> Admission:
    bounds = live.current.admission
    admission = Admission(bounds.max_concurrent, bounds.max_queued, bounds.max_wait_ms)

    def follow(settings: Settings) -> None:
        asked = settings.admission
        admission.set_bounds(asked.max_concurrent, asked.max_queued, asked.max_wait_ms)

    live.subscribe(follow)
    return admission


def _about(scheduler: TokenScheduler, models: Sequence[ServedModel], backends: list[str]) -> About:
    return About(
        version=version("headrace"),
        models=models,
        workers=scheduler.stats().workers,
        backends=backends,
        ns_per_token=lambda: scheduler.stats().ns_per_token,
    )


def _models(opened: _Opened) -> list[ServedModel]:
    encoder, reranker = opened.encoder, opened.reranker
    dim, limit = encoder.dim, encoder.max_tokens
    models = [ServedModel("dense", encoder.model_id, encoder.revision, dim, limit, encoder.choice, encoder.calibration)]
    if (sparse := opened.sparse) is not None:
        models.append(ServedModel("sparse", sparse.model_id, sparse.revision, 0, sparse.max_tokens, None, None))
    if reranker is not None:
        limit, choice = reranker.encoder.tokenization.max_tokens, reranker.choice
        models.append(
            ServedModel("cross_encoder", reranker.model_id, reranker.revision, 0, limit, choice, reranker.calibration)
        )
    return models
