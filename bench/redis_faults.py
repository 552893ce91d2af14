"""Kills Redis under load, starts it again, and measures what callers notice: failures, latency, the way back.

A server process gets Retrieve calls in open loop: some questions again and again, some new. It keeps few vectors and
no results in its own memory, so that many calls look into Redis; with it gone they encode their question anew. Latency
counts from the planned time of each call, as in `bench.load`.

    python -m bench.redis_faults --rate 200 --seconds 30 --json bench/results/redis_faults.json
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc.aio

from bench._common import options
from bench._common.faulty_load import Change, Figures, Phase, Plan, Sample, figures_of, plan_of, send_all
from bench._common.loops import run
from bench._common.redis_server import RedisServer
from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table, say
from headrace.v1 import retrieval_pb2_grpc
from indexers.demo_corpus import DEMO_FIELDS, demo_documents
from indexers.parsing.parsed import ParsedDocument
from retrieval.cli.child import child_server
from retrieval.cli.index_job import IndexJob
from retrieval.cli.index_local import index_local
from retrieval.settings.load import PREFIX, load_settings

_COLLECTION, _TENANT = "python", "default"  # those of `headrace demo`, so that its folder may be used
_FAULTS = ("kill", "stop")
_EMBEDDINGS_BYTES = 320 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to."""

    rate: float
    fault: str
    budget_ms: float
    figures: Figures


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    arguments.folder = arguments.folder.absolute()
    report = run(_measure(arguments))
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), None)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    made.add_argument("--rate", type=float, default=200.0, metavar="R", help="calls a second")
    made.add_argument("--seconds", type=float, default=20.0, metavar="S", help="of each of three phases")
    made.add_argument("--new-share", type=float, default=0.1, metavar="SHARE", help="of questions never asked before")
    made.add_argument("--fault", choices=_FAULTS, default="kill", help="whether Redis is killed or stops answering")
    made.add_argument("--budget-ms", type=float, default=20.0, metavar="MS", help="what a look-up may cost")
    made.add_argument(
        "--folder", type=Path, default=Path(".cache/headrace-demo"), metavar="DIR", help="the demo's data"
    )
    made.add_argument("--seed", type=int, default=1)
    return made.parse_args()


async def _measure(arguments: argparse.Namespace) -> Report:
    documents = await asyncio.to_thread(lambda: list(demo_documents()))
    titles = [item.document.title for item in documents]
    plan = plan_of(arguments.rate, 3 * arguments.seconds, titles, arguments.new_share, arguments.seed)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name, RedisServer() as redis:
        config = Path(name) / "headrace.toml"
        config.write_text(_settings_text(redis.url, arguments.budget_ms), encoding="utf-8")
        await _index(config, arguments.folder, documents)
        environ = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
        async with child_server(config, arguments.folder, environ) as address:
            say(f"serving at {address}; {len(plan.arrivals_ns):,} calls")
            samples, changes = await _load(address, plan, redis, arguments)
    return Report(arguments.rate, arguments.fault, arguments.budget_ms, figures_of(samples, changes))


async def _load(
    address: str, plan: Plan, redis: RedisServer, arguments: argparse.Namespace
) -> tuple[Sequence[Sample], Sequence[Change]]:
    async with grpc.aio.insecure_channel(address) as channel:
        await asyncio.wait_for(channel.channel_ready(), 60.0)
        stub = retrieval_pb2_grpc.RetrievalServiceStub(channel)
        started_ns = time.monotonic_ns()
        fault = asyncio.create_task(_fault(redis, arguments.fault, arguments.seconds, started_ns))
        samples = await send_all(stub, plan, _COLLECTION, started_ns)
        return samples, await fault


async def _fault(redis: RedisServer, kind: str, seconds: float, started_ns: int) -> list[Change]:
    """Takes Redis away after a third of the run, and brings it back after another."""
    away, back = (redis.kill, redis.start) if kind == "kill" else (redis.suspend, redis.resume)
    changes = []
    for number, (phase, change) in enumerate(((Phase.DURING, away), (Phase.AFTER, back)), 1):
        await asyncio.sleep(max(0.0, started_ns / 1e9 + number * seconds - time.monotonic()))
        begun_ns = time.monotonic_ns() - started_ns
        await asyncio.to_thread(change)
        changes.append(Change(phase, begun_ns, time.monotonic_ns() - started_ns))
    return changes


async def _index(config: Path, folder: Path, documents: Sequence[ParsedDocument]) -> None:
    settings = load_settings(config, {}, {"data.folder": str(folder)}).settings
    fields = {name: kind.value for name, kind in DEMO_FIELDS.items()}
    await index_local(settings, _TENANT, IndexJob(_COLLECTION, fields, documents, ()), None)


def _print(report: Report) -> None:
    rows: list[list[Cell]] = [
        [one.phase, one.calls, one.failures, one.flagged, one.shared_hits, one.latency.p50_ms, one.latency.p99_ms]
        for one in report.figures.phases
    ]
    columns = ["Redis", "calls", "failures", "flagged", "shared hits", "p50, ms", "p99, ms"]
    print_table(f"{report.rate:.0f} calls/s, Redis: {report.fault}", columns, rows, digits=1)
    found = report.figures
    rows = [
        ["p99 while away, beyond before, ms", found.p99_added_ms],
        ["budget, ms", report.budget_ms],
        ["last flagged call after its return, s", found.flagged_until_s],
        ["first shared hit after its return, s", found.shared_hit_after_s],
    ]
    print_table("What callers noticed", ["", "value"], rows)


def _settings_text(url: str, budget_ms: float) -> str:
    return f"""
[retrieval]
candidates = 20

[context]
budget_tokens = 256

[cache]
embeddings_bytes = {_EMBEDDINGS_BYTES}
results_bytes = 0

[cache.redis]
url = "{url}"
budget_ms = {budget_ms}
"""


if __name__ == "__main__":
    main()
