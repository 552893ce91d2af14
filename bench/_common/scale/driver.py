"""What only the driver of a run over a Ray cluster does: the product's own driver, over a cluster that takes no time.

The stages' rows are made beforehand and handed over pickled, as they come out of Ray. So what is timed is taking them,
comparing, writing, proving and keeping the queue: what no second machine can help with.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from bench._common.engines import Encoders
from bench._common.pipelines import open_catalog
from bench._common.scale.costs import Driver
from encoders.types import WorkClass
from indexers.ingest import Indexer
from indexers.jobs.index_target import IndexTarget
from indexers.jobs.running.collecting import Collected
from indexers.jobs.running.known import Known
from indexers.jobs.running.parts import RunParts
from indexers.jobs.spec import JobSpec
from indexers.jobs.sqlite.store import SqliteJobStore
from indexers.jobs.state import Job, JobKey, Run, RunRequest, RunState
from indexers.preparation import Encoded
from indexers.sources.source import ItemRef
from indexers.types import CollectionKey, Document
from retrieval.jobs.ray.cluster import Cluster
from retrieval.jobs.ray.rows import ItemRead, ItemToRead, Made, Ready, Row, Unchanged, packed, unpacked
from retrieval.jobs.ray.working import RayItems
from retrieval.settings import Settings

_KEY = JobKey("default", "scale")
_SPEC = {"name": _KEY.name, "collection": "driver", "source": {"kind": "folder", "path": "."}}
_OFFERED = 500


class _AtOnce:
    """Gives the rows of an item by its address."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows

    def run(self, items: Sequence[ItemToRead], options: object, stored: Mapping[str, str]) -> Iterator[Made]:
        """Yields what the stages of a cluster would."""
        del options
        for item in items:
            made: Ready = unpacked(self._rows[item.lease.uri])
            name = made.document.document_id
            if (found := stored.get(name)) is not None:
                yield Unchanged(item.number, name, found)
            else:
                yield Ready(item.number, made.document, made.encoded, made.warnings)
            yield ItemRead(item.number, 1)


async def encode(documents: Sequence[Document], settings: Settings, encoders: Encoders, folder: Path) -> list[Encoded]:
    """Encodes documents, as the job's own, for a collection that keeps everything."""
    catalog = open_catalog(settings, encoders.dense, folder)
    try:
        index = await catalog.create(CollectionKey("default", "driver"), {}, "")
        indexer = Indexer(index, encoders.dense, encoders.chunker, encoders.scheduler.bulk_threads)
        owned = [replace(document, owner=_KEY.name) for document in documents]
        return await indexer.encode(owned, WorkClass.BULK)
    finally:
        await catalog.close()


async def measure_driver(encoded: Sequence[Encoded], settings: Settings, encoders: Encoders, folder: Path) -> Driver:
    """Runs a job twice, each document an item: first all are new, then all are stored already."""
    rows = {
        f"file:///{number}": packed(Ready(0, one.document.document, one, ()))
        for number, one in enumerate(encoded)
        if one.document is not None
    }
    handed = sum(len(row["value"]) for row in rows.values()) / len(rows)
    catalog = open_catalog(settings, encoders.dense, folder)
    queue = folder / "jobs.sqlite"
    store = SqliteJobStore(queue)
    known = Known(folder / "known.sqlite", "scale")
    try:
        index = await catalog.open(CollectionKey("default", "driver"))
        target = IndexTarget(index, Indexer(index, encoders.dense, encoders.chunker), builds=False)
        parts = RunParts(store, cast("Any", None), cast("Any", None), target, folder, "driver")
        await store.put_job(Job(_KEY, JobSpec.model_validate(_SPEC), str(folder), datetime.now(UTC)))
        times = [await _timed(parts, known, rows) for _ in range(2)]
        stored = (await index.count(None)).documents
        if stored != len(rows):
            raise SystemExit(f"the driver wrote {stored} of {len(rows)} documents")
    finally:
        await store.close()
        known.close()
        await catalog.close()
    each = [one / len(rows) for one in times]
    return Driver(len(rows), each[0], each[1], _bytes_of(queue) / 2 / len(rows), handed)


def _bytes_of(database: Path) -> int:
    return sum(one.stat().st_size for one in database.parent.glob(f"{database.name}*"))


async def _timed(parts: RunParts, known: Known, rows: Mapping[str, Row]) -> float:
    """Returns the milliseconds of one run, its scan among them."""
    store = parts.store
    await store.submit(_KEY, RunRequest())
    claim = await store.claim_run(parts.worker, 600.0)
    assert claim is not None
    run: Run = claim.run
    collected = Collected(known, 0.0)
    items = RayItems(parts, run, cast("Cluster", _AtOnce(rows)), cast("Any", None), collected)
    started = time.perf_counter()
    refs = [ItemRef(uri, uri, uri, 1_000) for uri in rows]
    for at in range(0, len(refs), _OFFERED):
        await store.offer(claim, refs[at : at + _OFFERED])
    await store.mark_scanned(claim)
    await items.work(lambda: False)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    await store.end_run(claim, RunState.SUCCEEDED, "", "")
    return elapsed_ms
