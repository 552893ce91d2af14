"""Opens a collection in a process of its own, searches it, and says what that took; `bench.scale` starts it.

Run as `python -m bench._common.scale.serving DATA KIND QUESTIONS.npz`. No encoder is loaded, so that what the process
holds beyond its start is the collection's.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bench._common.memory import own_bytes
from bench._common.pipelines import KEY, open_catalog
from bench._common.scale.costs import Served
from bench._common.statistics import quantiles
from encoders.bm25 import Bm25Statistics, query_vector
from encoders.types import AsyncDenseEncoder, TermCounts
from indexers.index import Index
from indexers.options import ShardKind
from indexers.types import SearchQuery
from retrieval.settings import Settings

_LIMIT = 100  # `retrieval.candidates`
_PATIENCE_S = 600.0


def measure_served(data: Path, kind: ShardKind, questions: Path) -> Served:
    """Runs the process and returns what it found; the data folder must be closed here."""
    command = [sys.executable, "-m", "bench._common.scale.serving", str(data), kind.value, str(questions)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode:
        raise SystemExit(f"the process that serves ended with exit code {done.returncode}: {done.stderr[-500:]}")
    return Served(**json.loads(done.stdout))


def save_questions(
    path: Path, vectors: NDArray[np.float32], terms: Sequence[TermCounts], encoder: AsyncDenseEncoder
) -> None:
    """Writes questions for the process: vectors, their words, and the name of what made them."""
    ends = np.cumsum([len(one.terms) for one in terms])
    flat, counts = np.concatenate([one.terms for one in terms]), np.concatenate([one.counts for one in terms])
    np.savez(path, vectors=vectors, ends=ends, terms=flat, counts=counts, model=[encoder.model_id, encoder.revision])


async def _serve(data: Path, kind: ShardKind, questions: Path) -> Served:
    with np.load(questions) as stored:
        vectors, ends, flat, counts = stored["vectors"], stored["ends"], stored["terms"], stored["counts"]
        model_id, revision = (str(one) for one in stored["model"])
    begins = np.concatenate(([0], ends[:-1]))
    terms = [
        TermCounts(flat[begin:end], counts[begin:end], int(counts[begin:end].sum()))
        for begin, end in zip(begins, ends, strict=True)
    ]
    own, mapped = own_bytes(os.getpid()), _mapped_bytes()
    started = time.perf_counter()
    maker = SimpleNamespace(model_id=model_id, revision=revision, dim=vectors.shape[1], codec=None)
    catalog = open_catalog(_settings(kind), cast("AsyncDenseEncoder", maker), data)
    try:
        index = await catalog.open(KEY)
        open_ms = (time.perf_counter() - started) * 1e3
        statistics = index.statistics
        assert isinstance(statistics, Bm25Statistics)
        asked = [
            SearchQuery(vector, query_vector(one, statistics), _LIMIT)
            for vector, one in zip(vectors, terms, strict=True)
        ]
        await _times(index, asked)  # warms up
        both = await _times(index, asked)
        dense = await _times(index, [SearchQuery(one.dense, None, _LIMIT) for one in asked])
        sparse = await _times(index, [SearchQuery(None, one.sparse, _LIMIT) for one in asked])
        return Served(
            open_ms=open_ms,
            own_bytes=own_bytes(os.getpid()) - own,
            mapped_bytes=_mapped_bytes() - mapped,
            dense_p50_ms=quantiles(dense).p50_ms,
            sparse_p50_ms=quantiles(sparse).p50_ms,
            both_p50_ms=quantiles(both).p50_ms,
        )
    finally:
        await catalog.close()


def _settings(kind: ShardKind) -> Settings:
    return Settings.model_validate({"index": {"kind": kind.value}})


async def _times(index: Index, asked: Sequence[SearchQuery]) -> list[int]:
    times = []
    for one in asked:
        started = time.perf_counter_ns()
        await index.search(one, None)
        times.append(time.perf_counter_ns() - started)
    return times


def _mapped_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile:"))


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(_serve(Path(sys.argv[1]), ShardKind(sys.argv[2]), Path(sys.argv[3]))))))
