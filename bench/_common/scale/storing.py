"""Grows a collection from one size to the next by the product's indexer, and measures what each size takes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import psutil

from bench._common.engines import Encoders
from bench._common.memory import own_bytes
from bench._common.passages import iterate_passages
from bench._common.pipelines import KEY, open_catalog
from bench._common.scale.costs import Record, Size
from bench._common.scale.serving import measure_served
from bench._common.tables import say
from indexers.generation import STATISTICS
from indexers.ingest import Indexer
from indexers.options import ShardKind
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document
from retrieval.settings import Settings

_PART = 250  # documents, between two looks at how many chunks there are
_EVERY_S = 0.02
_MOST_DOCUMENTS = 10_000_000


@dataclass(frozen=True, slots=True)
class Grown:
    """All sizes, the record at the last one, and what was encoded on the way."""

    sizes: tuple[Size, ...]
    record: Record
    tokens: int
    seconds: float
    token_vectors_a_chunk: float


async def grow(
    folder: Path, corpus: Path, chunks: Sequence[int], settings: Settings, encoders: Encoders, asked: Path
) -> Grown:
    """Indexes documents until each number of chunks is reached; `asked` is what `save_questions` wrote."""
    data = folder / "data"
    source = iterate_passages(corpus, _MOST_DOCUMENTS)
    sizes: list[Size] = []
    tokens, seconds = 0, 0.0
    for wanted in chunks:
        catalog = open_catalog(settings, encoders.dense, data)
        try:
            index = await (catalog.open(KEY) if sizes else catalog.create(KEY, {}, ""))
            indexer = Indexer(index, encoders.dense, encoders.chunker, encoders.scheduler.bulk_threads)
            while (counts := await index.count(None)).chunks < wanted:
                part: list[Document] = list(islice(source, _PART))
                if not part:
                    raise SystemExit(f"the corpus ends at {counts.chunks:,} chunks; ask for fewer by --chunks")
                started = time.perf_counter()
                report = await indexer.run(map(ParsedDocument, part))
                seconds += time.perf_counter() - started
                tokens += report.counts.tokens
            say(f"{counts.chunks:,} chunks of {counts.documents:,} documents, {tokens / seconds:,.0f} tokens/s so far")
            build_s, peak = await watched(index.build())
        finally:
            await catalog.close()
        sizes.append(
            await asyncio.to_thread(measured_size, data, (counts.chunks, counts.documents), (build_s, peak), asked)
        )
    record, per_chunk = _record(next(data.rglob("record.sqlite")))
    vectors_a_chunk = per_chunk / encoders.dense.codec.code_bytes if encoders.dense.codec else 0.0
    return Grown(tuple(sizes), record, tokens, seconds, vectors_a_chunk)


async def watched(building: Awaitable[object]) -> tuple[float, int]:
    """Returns how long a build took, and the most that its process held."""
    task = asyncio.ensure_future(building)
    started, peak = time.perf_counter(), 0
    while not task.done():
        await asyncio.wait([task], timeout=_EVERY_S)
        children = psutil.Process(os.getpid()).children()
        peak = max([peak, *(own_bytes(child.pid) for child in children)])
    task.result()
    return time.perf_counter() - started, peak


def measured_size(data: Path, counts: tuple[int, int], built: tuple[float, int], asked: Path) -> Size:
    """Returns what a generation that was just built takes; its data folder must be closed."""
    current = next(data.rglob("CURRENT"))
    place = current.parent / current.read_text(encoding="ascii").strip()
    files = {path.relative_to(place): path.stat().st_blocks * 512 for path in place.rglob("*") if path.is_file()}
    distinct = _terms(place / STATISTICS)
    # The exact one goes first: it passes over the generation, and leaves it.
    exact = measure_served(data, ShardKind.EXACT, asked)
    graph = measure_served(data, ShardKind.EDGE, asked)
    say(f"  built in {built[0]:.1f} s; hybrid search {graph.both_p50_ms:.2f} ms, exact {exact.both_p50_ms:.2f} ms")
    return Size(
        chunks=counts[0],
        documents=counts[1],
        build_s=built[0],
        build_peak_bytes=built[1],
        generation_bytes=sum(files.values()),
        graph_bytes=sum(size for path, size in files.items() if _is_graph(path)),
        distinct_terms=distinct,
        graph=graph,
        exact=exact,
    )


def _is_graph(path: Path) -> bool:
    return any(part.startswith("vector_index") and "sparse" not in part for part in path.parts)


def _terms(path: Path) -> int:
    with np.load(path) as stored:
        return len(stored["terms"])


_SUMS = (
    "SELECT sum(length(CAST(text AS BLOB))) FROM texts",
    "SELECT sum(length(CAST(text AS BLOB)) + length(CAST(header AS BLOB)) + length(heading_path)) FROM chunks",
    "SELECT sum(length(CAST(metadata AS BLOB))) FROM documents",
    "SELECT sum(length(dense)) FROM vectors",
    "SELECT sum(length(terms)) FROM vectors",
    "SELECT sum(length(codes)) FROM token_codes",
)


def _record(path: Path) -> tuple[Record, float]:
    """Returns the record's bytes a chunk, and those of its token codes once more."""
    with closing(sqlite3.connect(path)) as connection:
        chunks = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
        parts = [(connection.execute(query).fetchone()[0] or 0) / chunks for query in _SUMS]
    texts, chunk_rows, metadata, vectors, terms, codes = parts
    distinct = (terms - 8) / 6  # a head of 8 bytes, then 4 for a term and 2 for its count
    file = sum(one.stat().st_size for one in path.parent.glob(f"{path.name}*"))
    return Record(texts, chunk_rows, metadata, vectors, terms, codes, distinct, file / chunks), codes
