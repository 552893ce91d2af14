"""Replays traces one after the other: writes go to the index, each question to every arm in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench._common.beir import BeirSet
from bench._common.cache.arms import Arm
from bench._common.cache.fixed import Cosines
from bench._common.cache.questions import KnownQuestions
from bench._common.cache.standing import Standing, Writes
from bench._common.cache.verdicts import Requests
from bench._common.engines import Encoders
from bench._common.pipelines import index_documents, open_catalog
from bench._common.tables import say
from bench._common.traces.events import Ask, Trace
from encoders.types import WorkClass
from indexers.index import Catalog, Index
from indexers.ingest import Indexer
from retrieval.settings import Settings

_SAY_EVERY = 1_000


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of all passes."""

    arms: Sequence[Arm]
    requests: Requests
    cosines: Cosines


async def replay(
    source: BeirSet, traces: Sequence[Trace], arms: Mapping[str, Settings], encoders: Encoders
) -> Replayed:
    """Indexes the documents and puts every question of the traces to every arm.

    The first arm is the one without a cache. What an arm has kept and learned stays from one trace to the next; the
    documents begin anew.
    """
    questions = KnownQuestions(encoders.cached)
    texts = list(dict.fromkeys(ask.text for trace in traces for ask in trace.asks()))
    say(f"{source.name}: {len(source.documents):,} documents, {len(texts):,} texts of questions")
    await questions.learn(texts)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        catalog = open_catalog(next(iter(arms.values())), encoders.cached, Path(folder))
        try:
            opened = [Arm.open(name, settings, catalog, questions, encoders) for name, settings in arms.items()]
            asks = await _replay_all(source, traces, opened, catalog, encoders)
            for arm in opened:
                await arm.pipeline.close()
        finally:
            await catalog.close()
    requests = Requests(asks, [one.text for one in opened[0].answered])
    return Replayed(opened, requests, Cosines(texts, np.stack([questions.vector(text) for text in texts])))


async def _replay_all(
    source: BeirSet, traces: Sequence[Trace], arms: Sequence[Arm], catalog: Catalog, encoders: Encoders
) -> list[Ask]:
    index, _ = await index_documents(catalog, source.documents, {}, encoders, encoders.cached)
    indexer = Indexer(index, encoders.cached, encoders.chunker)
    standing, asks = Standing(source.documents), list[Ask]()
    for trace in traces:
        await _write(index, indexer, standing.start(trace))
        for event in trace.events:
            if not isinstance(event, Ask):
                await _write(index, indexer, standing.apply(event))
                continue
            ask = standing.stamped(event)
            turn = len(asks) % len(arms)
            for arm in (*arms[turn:], *arms[:turn]):
                await arm.ask(ask)
            asks.append(ask)
            if len(asks) % _SAY_EVERY == 0:
                say(f"{len(asks):,} requests")
    return asks


async def _write(index: Index, indexer: Indexer, writes: Writes) -> None:
    if writes.deletes:
        await index.delete(writes.deletes)
    if writes.upserts:
        await indexer.upsert(writes.upserts, WorkClass.ONLINE)
