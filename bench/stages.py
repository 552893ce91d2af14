"""Shows where the time of a Retrieve goes, stage by stage, beside the calls that it cannot do without.

Three arms take turns on every ten questions, forwards and backwards (ABBA), so that each runs warm as in service:
- served: a unary call over gRPC on the loopback to `headrace serve` in another process, whose ledger is read;
- bare: tokenize, one ONNX run, one query of the Edge shard, called here, without scheduler, event loop or server;
- watched: the same request path in this process, with a second watch around each stage.
The query cache is left out, so each request encodes its question. Reranking is off.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc.aio

from bench._common import options
from bench._common.beir import BeirSet, Question, Split, read_set
from bench._common.engines import Encoders, open_bare, open_encoders
from bench._common.loops import run
from bench._common.outside import OutsideClock
from bench._common.pipelines import KEY, RequestPath, index_documents, open_catalog, request_path_over
from bench._common.plots import Titles, plot_stack
from bench._common.results import plain, write_results
from bench._common.stage_figures import Bare, Part, Served, StageReport, Watched, report
from bench._common.tables import Cell, print_table, say
from encoders.bm25 import Bm25Statistics, query_vector
from encoders.dense import OnnxDenseEncoder
from encoders.terms import count_terms
from encoders.types import TextKind
from headrace.v1 import common_pb2 as common
from headrace.v1 import retrieval_pb2 as wire
from headrace.v1 import retrieval_pb2_grpc
from indexers.edge import EdgeStore
from indexers.generation import EDGE, Generations
from indexers.homes import GENERATIONS
from indexers.index import Index
from indexers.types import SearchQuery
from retrieval.cli.child import child_server
from retrieval.deadline import Deadline
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import RetrieveRequest, Thresholds

_WARM_UP = 20
_BLOCK = 10
_PATIENCE_S = 60.0
_TARGET_MS = 3.0


@dataclass(frozen=True, slots=True)
class _Arms:
    """The three ways to put a question."""

    stub: retrieval_pb2_grpc.RetrievalServiceAsyncStub
    path: RequestPath
    index: Index
    bare: OnnxDenseEncoder
    store: EdgeStore
    thresholds: Thresholds


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("set", type=Path, nargs="?", metavar="DIR", help="a set in BEIR's layout")
    made.add_argument("--demo", action="store_true", help="the documentation that every CPython carries instead")
    made.add_argument("--qrels", default="test", metavar="NAME")
    made.add_argument("--requests", type=int, default=300, metavar="N", help="questions that are put")
    arguments = made.parse_args()
    if arguments.demo == bool(arguments.set):
        made.error("give either a set or --demo")
    settings = options.settings(arguments, {})
    figures = run(_measure(arguments, settings))
    _print(figures)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(figures), settings)
    if outputs.plot_file:
        _plot(outputs.plot_file, figures)


async def _measure(arguments: argparse.Namespace, settings: Settings) -> StageReport:
    source = _demo() if arguments.demo else read_set(arguments.set, arguments.qrels).part(Split.ALL)
    step = max(1, len(source.questions) // (arguments.requests + _WARM_UP))
    questions = [question.text for question in source.questions[::step]][: arguments.requests + _WARM_UP]
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        async with open_encoders(settings, arguments.cache) as encoders:
            await _fill(Path(folder) / "served", settings, encoders, source)
            for copy in ("watched", "bare"):
                shutil.copytree(Path(folder) / "served", Path(folder) / copy)
            async with _open_arms(arguments, Path(folder), settings, encoders) as arms:
                return await _take_turns(arms, questions)


def _demo() -> BeirSet:
    """Makes a set of Python's own documentation whose questions are the titles of its documents."""
    from indexers.demo_corpus import demo_documents

    documents = [parsed.document for parsed in demo_documents()]
    questions = [Question(one.document_id, one.title, {one.document_id: 1}) for one in documents if one.title]
    return BeirSet("demo", tuple(documents), tuple(questions))


async def _fill(folder: Path, settings: Settings, encoders: Encoders, source: BeirSet) -> None:
    catalog = open_catalog(settings, encoders.cached, folder)
    try:
        _, done = await index_documents(catalog, source.documents, {}, encoders, encoders.cached)
        say(f"{source.name}: {done.counts.written:,} documents, {done.counts.chunks:,} chunks")
    finally:
        await catalog.close()


@asynccontextmanager
async def _open_arms(
    arguments: argparse.Namespace, folder: Path, settings: Settings, encoders: Encoders
) -> AsyncIterator[_Arms]:
    config = arguments.config or folder / "bench.toml"
    if not arguments.config:
        config.write_text("# Everything at its default.\n", encoding="utf-8")
    generation = Generations(folder / "bare" / KEY.tenant / KEY.collection / GENERATIONS).current()
    if generation is None:
        raise SystemExit("the collection has no generation; give a set with documents")
    store = EdgeStore(generation / EDGE, encoders.dense.dim, {}, settings.index.hnsw_ef)
    async with (
        child_server(config, folder / "served", os.environ) as address,
        grpc.aio.insecure_channel(address) as channel,
        request_path_over(folder / "watched", settings, encoders, encoders.dense) as path,
    ):
        yield _Arms(
            stub=retrieval_pb2_grpc.RetrievalServiceStub(channel),
            path=path,
            index=await path.catalog.open(KEY),
            bare=open_bare(settings),
            store=store,
            thresholds=resolve(settings, Overrides(rerank=False, cache=False)),
        )
    store.close()


async def _take_turns(arms: _Arms, questions: Sequence[str]) -> StageReport:
    served: list[Served] = []
    bare: list[Bare] = []
    watched: list[Mapping[str, Watched]] = []
    for number, start in enumerate(range(0, len(questions), _BLOCK)):
        block = questions[start : start + _BLOCK]
        turns = ("served", "bare", "watched")
        for turn in turns if number % 2 else reversed(turns):
            if turn == "served":
                served += [await _ask(arms, question) for question in block]
            elif turn == "bare":
                bare += [_call_bare(arms, question) for question in block]
            else:
                watched += [await _watch(arms, question) for question in block]
    return report(served[_WARM_UP:], bare[_WARM_UP:], watched[_WARM_UP:])


async def _ask(arms: _Arms, question: str) -> Served:
    request = wire.RetrieveRequest(
        collection=KEY.collection, query=question, options=wire.RetrievalOptions(rerank=False, cache=False)
    )
    started = time.perf_counter_ns()
    reply = await arms.stub.Retrieve(request, timeout=_PATIENCE_S)
    client_ns = time.perf_counter_ns() - started
    stages = {
        common.Stage.Name(cost.stage).removeprefix("STAGE_").lower(): Part(cost.wall_ns, cost.queue_ns, cost.compute_ns)
        for cost in reply.ledger.stages
    }
    return Served(client_ns, reply.ledger.total_ns, stages)


def _call_bare(arms: _Arms, question: str) -> Bare:
    started = time.perf_counter_ns()
    items = arms.bare.tokenize([question], TextKind.QUERY)
    tokenized = time.perf_counter_ns()
    [vector] = arms.bare.engine.run(items)
    encoded = time.perf_counter_ns()
    # What BM25 makes of the question is not one of the bare calls.
    statistics = arms.index.statistics
    assert isinstance(statistics, Bm25Statistics)
    query = SearchQuery(vector, query_vector(count_terms(question), statistics), arms.thresholds.candidates)
    asked = time.perf_counter_ns()
    arms.store.search(query, None, arms.thresholds.candidates)
    return Bare(tokenized - started, encoded - tokenized, time.perf_counter_ns() - asked)


async def _watch(arms: _Arms, question: str) -> Mapping[str, Watched]:
    request = RetrieveRequest("bench", KEY.tenant, KEY.collection, question, None, arms.thresholds)
    clock = OutsideClock()
    found = await arms.path.pipeline.retrieve(request, clock, Deadline.after(_PATIENCE_S))
    return {
        cost.stage.value: Watched(cost.wall_ns, clock.outside_ns[cost.stage])
        for cost in found.ledger.stages
        if cost.stage in clock.outside_ns
    }


def _print(figures: StageReport) -> None:
    stages: list[list[Cell]] = [
        [name, one.wall.p50_ms, one.wall.p95_ms, one.queue_p50_ms, one.compute_p50_ms, f"{one.share:.1%}"]
        for name, one in figures.stages.items()
    ]
    stages.append(["the server's whole", figures.server.p50_ms, figures.server.p95_ms, None, None, ""])
    stages.append(["the client's whole", figures.client.p50_ms, figures.client.p95_ms, None, None, ""])
    columns = ["stage", "wall p50", "p95", "queue p50", "compute p50", "share"]
    print_table(f"Retrieve over gRPC from another process, {figures.requests:,} requests, ms", columns, stages)
    bare: list[list[Cell]] = [[name, times.p50_ms, times.p95_ms] for name, times in figures.bare.items()]
    print_table("The same calls, bare, ms", ["call", "p50", "p95"], bare)
    agreement: list[list[Cell]] = [
        [name, one.difference_us, one.ratio, "yes" if one.agrees else "NO"] for name, one in figures.agreement.items()
    ]
    print_table("A watch around each stage", ["stage", "apart, us", "ratio", "agrees"], agreement)
    summary: list[list[Cell]] = [
        ["p50 above the bare calls, ms", figures.overhead_p50_ms, f"at most {_TARGET_MS:.0f}"],
        ["the same, question by question, ms", figures.paired_overhead_p50_ms, ""],
        ["transport p50, ms", figures.transport_p50_ms, ""],
        ["other, share", figures.other_share, "at most 0.05"],
        ["other p50, ms", figures.other_p50_ms, "or at most 0.3"],
    ]
    print_table("Summary", ["", "measured", "target"], summary)


def _plot(path: Path, figures: StageReport) -> None:
    bars = ["served", "bare calls"]
    parts = {name: [one.wall.p50_ms, 0.0] for name, one in figures.stages.items()}
    parts["transport"] = [figures.transport_p50_ms, 0.0]
    parts |= {f"bare {name}": [0.0, figures.bare[name].p50_ms] for name in ("tokenize", "onnx", "index")}
    plot_stack(path, Titles("A Retrieve at the median, by stage", "ms", ""), bars, parts)


if __name__ == "__main__":
    main()
