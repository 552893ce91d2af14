"""Measures indexing: its rate beside the bare model, its memory, and what it does to a search that runs beside it.

- Rate: documents in, durable chunks out, in tokens per second, against the same tokens through the same ONNX session by
  as many threads, already tokenized, longest first. The two take turns (ABBA) on parts of the corpus. Building a
  generation is not in the rate: it happens once, in another process.
- Memory: the peak of a process that indexes 1,000 passages, and of one that indexes all of them, watched from outside;
  mapped files are left out, since the system takes them back when it wants to.
- A search beside it: Retrieve at fixed times while indexing runs, against the same with nothing else running.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench._common import options
from bench._common.engines import Encoders, open_bare, open_encoders
from bench._common.loops import run
from bench._common.memory import peak_of
from bench._common.passages import read_passages, read_questions
from bench._common.pipelines import KEY, RequestPath, open_request_path
from bench._common.plots import Titles, plot_bars
from bench._common.results import plain, write_results
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import Cell, print_table, say
from encoders.cpu import usable_cpus
from encoders.types import TextKind, TokenizedText
from indexers.ingest import Indexer
from indexers.parsing.parsed import ParsedDocument
from indexers.types import CollectionKey, Document
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import RetrieveRequest

_PARTS = 4  # A B B A
_FEW = 1_000
_SEARCHED = 1_000
_EVERY_S = 0.05
_IDLE_S = 5.0
_QUESTIONS = ("how is a service restarted", "what does the option do", "where are the log files", "how to build it")


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens and the seconds that they took."""

    tokens: int = 0
    seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def plus(self, other: Rate) -> Rate:
        """Adds another part."""
        return Rate(self.tokens + other.tokens, self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    passages: int
    tokens: int
    indexer_tokens_per_s: float
    bare_tokens_per_s: float
    ratio: float
    peak_few_bytes: int
    peak_all_bytes: int
    search_idle: Quantiles
    search_beside: Quantiles
    worst_delay_ms: float  # the slowest search beside indexing, less the idle median


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("--corpus", type=Path, required=True, metavar="FILE", help="JSON lines of documents; .gz too")
    made.add_argument("--passages", type=int, default=5_000, metavar="N")
    made.add_argument("--queries", type=Path, metavar="FILE", help="questions of the search; JSON lines or plain lines")
    arguments = made.parse_args()
    settings = options.settings(arguments, {})
    report = run(_measure(arguments, settings))
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        titles = Titles(f"Indexing {report.passages:,} passages", "", "tokens per second")
        series = {"tokens per second": [report.indexer_tokens_per_s, report.bare_tokens_per_s]}
        plot_bars(outputs.plot_file, titles, ["indexer", "bare ONNX loop"], series)


async def _measure(arguments: argparse.Namespace, settings: Settings) -> Report:
    peaks = [await asyncio.to_thread(_peak, arguments.corpus, count) for count in (_FEW, arguments.passages)]
    say(f"peaks: {', '.join(f'{peak / 2**20:,.0f} MiB' for peak in peaks)}")
    documents = read_passages(arguments.corpus, arguments.passages)
    questions = read_questions(arguments.queries) if arguments.queries else list(_QUESTIONS)
    async with (
        open_encoders(settings, arguments.cache) as encoders,
        open_request_path(settings, encoders, encoders.dense) as path,
    ):
        indexed, bare = await _rates(settings, encoders, path, documents)
        idle, beside = await _searches(settings, encoders, path, documents, questions)
    return Report(
        passages=len(documents),
        tokens=indexed.tokens,
        indexer_tokens_per_s=indexed.per_second,
        bare_tokens_per_s=bare.per_second,
        ratio=indexed.per_second / bare.per_second,
        peak_few_bytes=peaks[0],
        peak_all_bytes=peaks[1],
        search_idle=idle,
        search_beside=beside,
        worst_delay_ms=beside.max_ms - idle.p50_ms,
    )


def _peak(corpus: Path, count: int) -> int:
    command = [sys.executable, "-m", "bench._common.index_once", str(corpus), str(count)]
    with subprocess.Popen(command) as process:
        peak = peak_of(process)
    if process.returncode:
        raise SystemExit(f"indexing {count:,} passages ended with exit code {process.returncode}")
    return peak


async def _rates(
    settings: Settings, encoders: Encoders, path: RequestPath, documents: Sequence[Document]
) -> tuple[Rate, Rate]:
    indexed, bare = Rate(), Rate()
    for part in range(_PARTS):
        own = documents[part::_PARTS]

        async def through_indexer(own: Sequence[Document] = own, part: int = part) -> Rate:
            return await _indexed(encoders, path, own, part)

        async def through_session(own: Sequence[Document] = own) -> Rate:
            return await bare_rate(settings, encoders, own)

        if part in (0, _PARTS - 1):
            indexed, bare = indexed.plus(await through_indexer()), bare.plus(await through_session())
        else:
            bare, indexed = bare.plus(await through_session()), indexed.plus(await through_indexer())
        say(f"part {part + 1}: indexer {indexed.per_second:,.0f}, bare {bare.per_second:,.0f} tokens/s so far")
    return indexed, bare


async def _indexed(encoders: Encoders, path: RequestPath, documents: Sequence[Document], part: int) -> Rate:
    index = await path.catalog.create(CollectionKey(KEY.tenant, f"part-{part}"), {}, "")
    started = time.perf_counter()
    report = await Indexer(index, encoders.dense, encoders.chunker, encoders.scheduler.bulk_threads).run(
        map(ParsedDocument, documents)
    )
    return Rate(report.counts.tokens, time.perf_counter() - started)


async def bare_rate(settings: Settings, encoders: Encoders, documents: Sequence[Document]) -> Rate:
    """Returns the rate of the tokenized passages through the ONNX session alone, longest first."""
    chunker = encoders.chunker
    texts = [chunk.embedding_text for one in documents for chunk in chunker.chunk(one)]
    items = encoders.dense.tokenize(texts, TextKind.PASSAGE)
    workers = settings.encoders.workers or usable_cpus()
    seconds = await asyncio.to_thread(_run_sorted, open_bare(settings).engine.run, items, workers)
    return Rate(sum(item.token_count for item in items), seconds)


def _run_sorted(
    run_items: Callable[[Sequence[TokenizedText]], object], items: Sequence[TokenizedText], workers: int
) -> float:
    """Runs the items, longest first, on so many threads and returns the seconds."""
    waiting = sorted(items, key=lambda item: item.token_count)

    def work() -> None:
        # `pop` of a list is atomic; it raises when the list is empty.
        with suppress(IndexError):
            while True:
                run_items([waiting.pop()])

    threads = [threading.Thread(target=work) for _ in range(workers)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started


async def _searches(
    settings: Settings, encoders: Encoders, path: RequestPath, documents: Sequence[Document], questions: Sequence[str]
) -> tuple[Quantiles, Quantiles]:
    searched = await path.catalog.create(KEY, {}, "")
    indexer = Indexer(searched, encoders.dense, encoders.chunker, encoders.scheduler.bulk_threads)
    there = min(_SEARCHED, len(documents) // 2)
    await indexer.run(map(ParsedDocument, documents[:there]))
    await searched.build()
    requests = _requests(settings, questions)
    idle = await _search_until(path, requests, asyncio.create_task(asyncio.sleep(_IDLE_S)))
    # The same collection is written to: what searches wait for is all there is to wait for.
    writing = asyncio.create_task(indexer.run(map(ParsedDocument, documents[there:])))
    beside = await _search_until(path, requests, writing)
    return quantiles(idle), quantiles(beside)


async def _search_until(
    path: RequestPath, requests: Sequence[RetrieveRequest], other: asyncio.Task[object] | asyncio.Task[None]
) -> list[int]:
    """Searches at fixed times until the other task is done; times count from the planned start."""
    times: list[int] = []
    planned_ns = time.monotonic_ns()
    while not other.done():
        await asyncio.sleep(max(0.0, (planned_ns - time.monotonic_ns()) / 1e9))
        await path.pipeline.retrieve(requests[len(times) % len(requests)], StageClock(), Deadline.after(60.0))
        times.append(time.monotonic_ns() - planned_ns)
        planned_ns = max(planned_ns + int(_EVERY_S * 1e9), time.monotonic_ns())
    await other
    return times


def _requests(settings: Settings, questions: Sequence[str]) -> list[RetrieveRequest]:
    thresholds = resolve(settings, Overrides(rerank=False, cache=False))
    return [
        RetrieveRequest(str(number), KEY.tenant, KEY.collection, question, None, thresholds)
        for number, question in enumerate(questions)
    ]


def _print(report: Report) -> None:
    rate: list[list[Cell]] = [["indexer", report.indexer_tokens_per_s], ["bare ONNX loop", report.bare_tokens_per_s]]
    print_table(f"Rate, {report.passages:,} passages: {report.ratio:.3f} of the bare loop", ["", "tokens/s"], rate, 0)
    peaks: list[list[Cell]] = [
        [f"{_FEW:,}", report.peak_few_bytes / 2**20],
        [f"{report.passages:,}", report.peak_all_bytes / 2**20],
    ]
    print_table("Peak memory without mapped files", ["passages", "MiB"], peaks, 0)
    searches: list[list[Cell]] = [
        [name, times.p50_ms, times.p95_ms, times.max_ms, times.count]
        for name, times in (("idle", report.search_idle), ("beside indexing", report.search_beside))
    ]
    title = f"Retrieve, ms; the worst delay is {report.worst_delay_ms:.1f} ms"
    print_table(title, ["", "p50", "p95", "max", "searches"], searches)


if __name__ == "__main__":
    main()
