"""Our own share of the time to the first token, and what relaying costs, with many streams open.

Three runs: the service with answers that end and begin all the time, where the times are read; the same load on a
server that answers by itself, which is what gRPC and the machine cost anyway; and the service with answers that go on,
where nothing is computed but the relaying.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path

from bench._common.generate.asking import calls_from_child
from bench._common.generate.echo import echo_server
from bench._common.generate.figures import Cost, StreamFigures, stream_figures
from bench._common.generate.plan import Plan
from bench._common.generate.settings import scripted_settings
from bench._common.generate.watching import cost_of, cpu_of
from bench._common.generation.processes import scripted_server
from bench._common.generation.script import Script
from bench._common.generation.serving import COLLECTION, Service, fill, served
from bench._common.statistics import Quantiles
from bench._common.tables import Cell, print_table, say

OWN_P50_MS, OWN_P99_MS, CORE_SHARE = 2.0, 8.0, 0.40
"""What is aimed at."""

_ENDLESS = 4000
_RAMP_S = 3.0
_THINK_MS = 50.0  # a hundredth of an answer's time
_START_S = 2.0  # of a load generator
_SHORT_S = 7.0  # of the runs in which no percentiles far out are read


@dataclass(frozen=True, slots=True)
class StreamsReport:
    """All figures of a run."""

    streams: int
    tokens_a_second: float  # of each
    connections: int
    service: StreamFigures
    floor: StreamFigures
    with_requests: Cost  # answers begin and end all the time
    relaying: Cost  # answers go on
    floor_cost: Cost  # of the server that answers by itself; answers begin and end
    with_requests_core_share_per_1k: float
    relaying_core_share_per_1k: float
    floor_core_share_per_1k: float


def add_options(made: argparse.ArgumentParser) -> None:
    """Adds the options of this measurement."""
    made.add_argument("--streams", type=int, default=100, metavar="N", help="open at once")
    made.add_argument("--token-ms", type=float, default=100.0, metavar="MS", help="between tokens of a stream")
    made.add_argument("--tokens", type=int, default=50, metavar="N", help="of an answer, at the median")
    made.add_argument("--connections", type=int, default=10, metavar="N", help="that the client opens")
    made.add_argument("--seconds", type=float, default=28.0, metavar="S", help="in which calls are counted")


async def measure(arguments: argparse.Namespace) -> StreamsReport:
    """Runs all three."""
    folder: Path = arguments.cache / "generate"
    await fill(folder)
    script = Script(slots=10_000, prompt_ms_per_1k=50.0, token_ms=arguments.token_ms, tokens=_ENDLESS, stamped=1)
    with scripted_server(script) as model:
        async with served(folder, "streams", scripted_settings([model])) as service:
            ending, with_requests = await _ending(arguments, service, model)
            say(f"own share p50 {ending.own.p50_ms:.2f} ms, p99 {ending.own.p99_ms:.2f} ms")
            relaying = await _endless(arguments, service, model)
            say(f"relaying 1,000 tokens/s: {relaying.core_share_per_1k:.1%} of a core")
    with echo_server(script) as echo:
        floor, floor_cost = await _floor(arguments, echo)
    return StreamsReport(
        streams=arguments.streams,
        tokens_a_second=1e3 / arguments.token_ms,
        connections=arguments.connections,
        service=ending,
        floor=floor,
        with_requests=with_requests,
        relaying=relaying,
        floor_cost=floor_cost,
        floor_core_share_per_1k=floor_cost.core_share_per_1k,
        with_requests_core_share_per_1k=with_requests.core_share_per_1k,
        relaying_core_share_per_1k=relaying.core_share_per_1k,
    )


async def _ending(arguments: argparse.Namespace, service: Service, model: str) -> tuple[StreamFigures, Cost]:
    asking = asyncio.create_task(calls_from_child(_plan(arguments, service, arguments.seconds)))
    cost = await cost_of(service.pid, model, arguments.streams, arguments.seconds)
    return stream_figures(await asking), cost


async def _floor(arguments: argparse.Namespace, echo: Service) -> tuple[StreamFigures, Cost]:
    plan = _plan(arguments, echo, _SHORT_S)
    asking = asyncio.create_task(calls_from_child(plan))
    await asyncio.sleep(plan.warm_s + _START_S)
    cpu_s = await cpu_of(echo.pid, _SHORT_S - _START_S)
    # All streams are open all the time, so how many tokens there are follows.
    tokens = round(arguments.streams * (_SHORT_S - _START_S) * 1e3 / arguments.token_ms)
    return stream_figures(await asking), Cost(_SHORT_S - _START_S, 0, tokens, cpu_s)


async def _endless(arguments: argparse.Namespace, service: Service, model: str) -> Cost:
    plan = Plan(
        targets=[service.address],
        collection=COLLECTION,
        warm_s=_RAMP_S,
        seconds=_SHORT_S + _START_S,
        streams=arguments.streams,
        ramp_s=_RAMP_S,
        tokens=_ENDLESS,
        connections=arguments.connections,
        cut=True,
    )
    asking = asyncio.create_task(calls_from_child(plan))
    cost = await cost_of(service.pid, model, arguments.streams, _SHORT_S)
    await asking
    return cost


def _plan(arguments: argparse.Namespace, service: Service, seconds: float) -> Plan:
    answer_s = arguments.tokens * arguments.token_ms / 1e3
    return Plan(
        targets=[service.address],
        collection=COLLECTION,
        warm_s=1.5 * answer_s,
        seconds=seconds,
        streams=arguments.streams,
        ramp_s=answer_s,
        think_ms=_THINK_MS,
        tokens=arguments.tokens,
        spread=0.3,
        connections=arguments.connections,
    )


def show(report: StreamsReport) -> None:
    """Prints the figures beside what is aimed at."""
    rows = [_row("service: own share", report.service.own)]
    rows += [_row(f"service: {name}", getattr(report.service, name)) for name in _PARTS]
    rows += [_row("floor: own share", report.floor.own), _row("floor: token_delay", report.floor.token_delay)]
    title = f"{report.streams} streams of {report.tokens_a_second:g} tokens/s, {report.service.requests} requests, ms"
    print_table(title, ["", "p50", "p95", "p99", "max"], rows)
    costs: list[list[Cell]] = [
        [name, of.token_us, f"{of.core_share_per_1k:.1%}"]
        for name, of in (
            ("service, answers that go on", report.relaying),
            ("service, answers that begin and end", report.with_requests),
            ("floor, answers that begin and end", report.floor_cost),
        )
    ]
    print_table("Computing time", ["", "us a token", "of a core at 1,000/s"], costs, digits=1)
    own = report.service.own
    aims: list[list[Cell]] = [
        ["own share p50, ms", own.p50_ms, f"< {OWN_P50_MS:g}"],
        ["own share p99, ms", own.p99_ms, f"< {OWN_P99_MS:g}"],
        ["of a core at 1,000 tokens/s", report.relaying.core_share_per_1k, f"< {CORE_SHARE:g}"],
    ]
    print_table(f"Summary; not answered: {report.service.codes or 'none'}", ["", "measured", "aim"], aims)


_PARTS = ("asking", "answering", "grpc", "inside", "upstream", "retrieval", "first_piece", "token_delay")


def _row(name: str, of: Quantiles) -> list[Cell]:
    return [name, of.p50_ms, of.p95_ms, of.p99_ms, of.max_ms]
