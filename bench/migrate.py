"""Measures a collection that moves to another model while it serves: what questions, embeddings and writes wait for.

A server in a process of its own holds the passages. It is called at fixed times: every 50 ms with a question whose
vectors are known, every 200 ms with a new one, every 500 ms with a document to write. While that goes on it is left
alone, moved, left alone, and moved again, to models that are the bundled one cut a token shorter: another revision with
the same cost. Results are not cached, so each call searches.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common import options
from bench._common.crash.processes import Killable
from bench._common.loops import run
from bench._common.migrate_load import Call, Calling, Load, Span, within
from bench._common.passages import read_passages, read_questions
from bench._common.redis_server import free_port
from bench._common.results import plain, write_results
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import Cell, print_table, say
from encoders.sources import bundled_folders
from headrace.v1 import migrations_pb2
from retrieval.client import Client, document

_COLLECTION = "docs"
_IDLE_S = 20.0
_MOVES = 2
_QUESTIONS = 50
_AROUND_S = 2.0  # on both sides of a change-over


@dataclass(frozen=True, slots=True)
class Move:
    """One migration."""

    seconds: float
    documents: int
    encoded: int
    recall: float


@dataclass(frozen=True, slots=True)
class Report:
    """All figures."""

    passages: int
    moves: Sequence[Move]
    known_idle: Quantiles
    known_moving: Quantiles
    known_ratio: float  # of their p95
    embed_idle: Quantiles  # the stage of new questions, in the server
    embed_moving: Quantiles
    writes_idle: Quantiles
    writes_moving: Quantiles
    worst_around_change_ms: float  # of questions
    worst_write_ms: float
    calls: int
    failures: Sequence[str]


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("--corpus", type=Path, required=True, metavar="FILE", help="JSON lines of documents; .gz too")
    made.add_argument(
        "--queries", type=Path, required=True, metavar="FILE", help="questions; JSON lines or plain lines"
    )
    made.add_argument("--passages", type=int, default=5_000, metavar="N")
    arguments = made.parse_args()
    report = run(_measure(arguments))
    _print(report)
    if (path := options.outputs(arguments).json_file) is not None:
        write_results(path, plain(report), None)


async def _measure(arguments: argparse.Namespace) -> Report:
    with tempfile.TemporaryDirectory(prefix="headrace-migrate-") as place:
        folder = Path(place)
        address = f"127.0.0.1:{free_port()}"
        (folder / "headrace.toml").write_text(_settings(address), encoding="utf-8")
        server = Killable(folder, "server", "serve", "--config", str(folder / "headrace.toml"), ready='"serving"')
        server.start()
        try:
            async with Client(address, timeout_s=120.0) as client:
                return await _moved(client, arguments, [_model(folder, number) for number in range(_MOVES)])
        finally:
            server.stop()


async def _moved(client: Client, arguments: argparse.Namespace, models: Sequence[Path]) -> Report:
    passages = read_passages(arguments.corpus, arguments.passages)
    await client.create_collection(_COLLECTION)
    await client.import_documents(
        _COLLECTION, (document(one.document_id, one.text, title=one.title) for one in passages)
    )
    await client.build_collection(_COLLECTION)
    say(f"{len(passages):,} passages are indexed")
    questions = read_questions(arguments.queries, _QUESTIONS)
    calling = Calling(client, _COLLECTION, questions)
    idle, moving, changes, moves = [], [], [], []
    await asyncio.sleep(_QUESTIONS * 0.05 + 1.0)  # until the vectors of the questions are known
    for model in models:
        begun = time.monotonic_ns()
        await asyncio.sleep(_IDLE_S)
        idle.append((begun, time.monotonic_ns()))
        begun = time.monotonic_ns()
        last = await _migrated(client, model)
        ended = time.monotonic_ns()
        moving.append((begun, ended))
        changes.append((ended - int(_AROUND_S * 1e9), ended + int(_AROUND_S * 1e9)))
        moves.append(Move((ended - begun) / 1e9, last.documents, last.encoded, last.check.recall))
        say(f"moved in {moves[-1].seconds:.1f} s")
        await asyncio.sleep(_QUESTIONS * 0.05 + 1.0)
    return _report(len(passages), moves, await calling.end(), idle, moving, changes)


async def _migrated(client: Client, model: Path) -> migrations_pb2.Migration:
    request = migrations_pb2.MigrateCollectionRequest(collection=_COLLECTION, model=str(model))
    last = migrations_pb2.Migration()
    async for one in client.migrations.migrate(request):
        last = one.migration
    return last


def _report(
    passages: int,
    moves: Sequence[Move],
    load: Load,
    idle: Sequence[Span],
    moving: Sequence[Span],
    changes: Sequence[Span],
) -> Report:
    known = [one for one in load.known if one.cached]
    new = [one for one in load.new if not one.cached]
    known_idle, known_moving = _latency(within(known, idle)), _latency(within(known, moving))
    return Report(
        passages=passages,
        moves=moves,
        known_idle=known_idle,
        known_moving=known_moving,
        known_ratio=known_moving.p95_ms / known_idle.p95_ms,
        embed_idle=quantiles([one.embed_ns for one in within(new, idle)]),
        embed_moving=quantiles([one.embed_ns for one in within(new, moving)]),
        writes_idle=_latency(within(load.writes, idle)),
        writes_moving=_latency(within(load.writes, moving)),
        worst_around_change_ms=_latency(within([*load.known, *load.new], changes)).max_ms,
        worst_write_ms=_latency(within(load.writes, changes)).max_ms,
        calls=len(load.known) + len(load.new) + len(load.writes) + len(load.failures),
        failures=load.failures,
    )


def _latency(calls: Sequence[Call]) -> Quantiles:
    return quantiles([one.latency_ns for one in calls])


def _model(folder: Path, number: int) -> Path:
    """Makes a model that costs what the bundled one does, and is another revision."""
    [bundled] = [one for one in bundled_folders() if one.name == "minilm-l6"]
    copied = folder / f"model-{number}"
    shutil.copytree(bundled, copied)
    settings = copied / "sentence_bert_config.json"
    said = json.loads(settings.read_text(encoding="utf-8"))
    settings.write_text(json.dumps(said | {"max_seq_length": said["max_seq_length"] - 1 - number}), encoding="utf-8")
    for left in ("headrace-model.json", "reference.json"):
        (copied / left).unlink(missing_ok=True)
    return copied


def _settings(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"""
[server]
host = "{host}"
port = {port}

[data]
folder = "data"

[cache]
results_bytes = 0

[jobs]
workers = 0
"""


def _print(report: Report) -> None:
    rows: list[Sequence[Cell]] = []
    for name, idle, moving in (
        ("Retrieve, known vectors", report.known_idle, report.known_moving),
        ("embed, new questions", report.embed_idle, report.embed_moving),
        ("write of one document", report.writes_idle, report.writes_moving),
    ):
        rows.append(_row(f"{name}, idle", idle, None))
        rows.append(_row("while it moves", moving, moving.p95_ms / idle.p95_ms if idle.p95_ms else None))
    title = f"{report.passages:,} passages, {report.calls:,} calls, {len(report.failures)} failed"
    print_table(title, ["ms", "p50", "p95", "p99", "max", "p95 ratio"], rows, 2)
    for move in report.moves:
        rate = move.encoded / move.seconds
        say(f"{move.encoded:,} of {move.documents:,} documents in {move.seconds:.1f} s ({rate:.0f} a second)")
    say(f"within {_AROUND_S:.0f} s of a change-over: questions at most {report.worst_around_change_ms:.1f} ms")
    say(f"writes at most {report.worst_write_ms:.1f} ms; recall@10 {min(one.recall for one in report.moves):.3f}")
    for failure in list(dict.fromkeys(report.failures))[:5]:
        say(f"failed: {failure}")


def _row(name: str, of: Quantiles, ratio: float | None) -> Sequence[Cell]:
    return (name, of.p50_ms, of.p95_ms, of.p99_ms, of.max_ms, ratio)


if __name__ == "__main__":
    main()
