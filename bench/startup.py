"""Measures the cold start of `headrace serve`: from the start of its process to SERVING, and to the first answer.

The data folder holds a collection of synthetic vectors in one generation; it is made once and kept, since building its
graph takes minutes. Files are in the system's page cache: what is cold is the process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import numpy as np
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench._common import options
from bench._common.engines import open_bare
from bench._common.loops import run
from bench._common.memory import own_bytes
from bench._common.plots import Titles, plot_bars
from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table, say
from encoders.terms import count_terms
from headrace.v1 import retrieval_pb2 as wire
from headrace.v1 import retrieval_pb2_grpc
from indexers.catalog import EmbeddedCatalog
from indexers.chunking import chunk_id
from indexers.errors import CollectionNotFound
from indexers.models import OneModel
from indexers.options import DenseModel, IndexOptions
from indexers.types import Chunk, CollectionKey, Document, EncodedChunk, EncodedDocument
from retrieval.settings import Settings

_KEY = CollectionKey("default", "synthetic")
_WRITTEN_AT_ONCE = 1_000
_PATIENCE_S = 60.0
_POLL_S = 0.002
_TARGET_S = 3.0


@dataclass(frozen=True, slots=True)
class Start:
    """One start, in seconds since the process was started, and what it held then."""

    serving_s: float
    first_answer_s: float
    own_bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    vectors: int
    starts: tuple[Start, ...]
    median_serving_s: float
    worst_serving_s: float
    median_first_answer_s: float


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("--vectors", type=int, default=100_000, metavar="N")
    made.add_argument("--runs", type=int, default=5, metavar="N")
    arguments = made.parse_args()
    settings = options.settings(arguments, {})
    folder = arguments.cache / f"startup-{arguments.vectors}"
    folder.mkdir(parents=True, exist_ok=True)
    run(_prepare(settings, folder, arguments.vectors))
    starts = tuple(run(_start(arguments, folder)) for _ in range(arguments.runs))
    report = Report(
        vectors=arguments.vectors,
        starts=starts,
        median_serving_s=float(np.median([start.serving_s for start in starts])),
        worst_serving_s=max(start.serving_s for start in starts),
        median_first_answer_s=float(np.median([start.first_answer_s for start in starts])),
    )
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        names = [f"run {number}" for number in range(1, len(starts) + 1)]
        series = {
            "to SERVING": [start.serving_s for start in starts],
            "to the first answer": [start.first_answer_s for start in starts],
        }
        plot_bars(outputs.plot_file, Titles(f"Cold start, {report.vectors:,} vectors", "", "s"), names, series)


async def _prepare(settings: Settings, folder: Path, count: int) -> None:
    """Makes the collection unless an earlier run has left it whole."""
    bare = await asyncio.to_thread(open_bare, settings)
    catalog = EmbeddedCatalog(
        folder, OneModel(DenseModel(bare.model_id, bare.revision, bare.dim)), IndexOptions(build_automatically=False)
    )
    try:
        try:
            index = await catalog.open(_KEY)
            if index.epoch.generation and (await index.count(None)).chunks == count:
                return
            await catalog.delete(_KEY)
        except CollectionNotFound:
            pass
        index = await catalog.create(_KEY, {}, "synthetic vectors")
        say(f"making {count:,} synthetic vectors; this is done once")
        for documents in _synthetic(count, bare.dim):
            await index.upsert(documents)
        await index.build()
    finally:
        await catalog.close()


def _synthetic(count: int, dim: int) -> Iterator[list[EncodedDocument]]:
    random = np.random.default_rng(1)
    for start in range(0, count, _WRITTEN_AT_ONCE):
        vectors = random.standard_normal((min(_WRITTEN_AT_ONCE, count - start), dim), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        yield [_document(number, vector) for number, vector in enumerate(vectors, start)]


def _document(number: int, vector: np.ndarray[tuple[int], np.dtype[np.float32]]) -> EncodedDocument:
    text = f"Synthetic passage {number} about part {number % 997} of machine {number % 89}."
    name = f"synthetic-{number}"
    chunk = Chunk(chunk_id(name, text, 0), 0, 0, len(text), (), 0, text, len(text.split()), "", 0)
    return EncodedDocument(Document(name, "", text), "synthetic", (EncodedChunk(chunk, vector, count_terms(text)),))


async def _start(arguments: argparse.Namespace, folder: Path) -> Start:
    port = _free_port()
    started = time.perf_counter()
    with _server(arguments, folder, port) as process:
        await _until_serving(process, port)
        serving_s = time.perf_counter() - started
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = retrieval_pb2_grpc.RetrievalServiceStub(channel)
            request = wire.RetrieveRequest(collection=_KEY.collection, query="which part of the machine")
            await stub.Retrieve(request, timeout=_PATIENCE_S)
        first_answer_s = time.perf_counter() - started
        found = Start(serving_s, first_answer_s, own_bytes(process.pid))
    say(f"SERVING after {found.serving_s:.2f} s, first answer after {found.first_answer_s:.2f} s")
    return found


@contextmanager
def _server(arguments: argparse.Namespace, folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "retrieval.cli.main", "serve", "--data", str(folder), "--port", str(port)]
    command += ["--config", str(arguments.config)] if arguments.config else []
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ)) as child,
    ):
        try:
            yield child
        except SystemExit:
            log.seek(0)
            say(log.read().decode(errors="replace")[-2_000:])
            raise
        finally:
            child.terminate()
            child.wait(_PATIENCE_S)


async def _until_serving(process: subprocess.Popen[bytes], port: int) -> None:
    give_up = time.monotonic() + _PATIENCE_S
    while process.poll() is None and time.monotonic() < give_up:
        # A channel that was refused once waits before it tries again, so one is opened only when somebody listens.
        if _listens(port) and await _serves(port):
            return
        await asyncio.sleep(_POLL_S)
    raise SystemExit("the server did not begin to serve")


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def _serves(port: int) -> bool:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            reply = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5.0)
        except grpc.aio.AioRpcError:
            return False
    return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _print(report: Report) -> None:
    rows: list[list[Cell]] = [
        [number, start.serving_s, start.first_answer_s, start.own_bytes / 2**20]
        for number, start in enumerate(report.starts, 1)
    ]
    columns: Sequence[str] = ["run", "SERVING after s", "first answer after s", "own memory MiB"]
    title = (
        f"Cold start, {report.vectors:,} vectors: median {report.median_serving_s:.2f} s, "
        f"worst {report.worst_serving_s:.2f} s, target {_TARGET_S:.0f} s"
    )
    print_table(title, columns, rows, digits=2)


if __name__ == "__main__":
    main()
