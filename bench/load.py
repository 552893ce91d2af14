"""Sends Retrieve calls to a running server at a fixed rate, whatever it answers; latency counts from the planned time.

A client that waits for answers sends less when the server is slow, and so hides what callers would feel (coordinated
omission). Here arrivals are planned before the run, evenly or as a Poisson process, and a call's latency begins at its
planned time, so time that a late client or a queue adds is in it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc.aio

from bench._common import options
from bench._common.loops import run
from bench._common.passages import read_questions
from bench._common.plots import Line, Titles, plot_lines
from bench._common.results import plain, write_results
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import Cell, print_table
from headrace.v1 import retrieval_pb2 as wire
from headrace.v1 import retrieval_pb2_grpc

QUESTIONS = (
    "How do I make sure a file is closed even when an exception is raised?",
    "What is the difference between a generator and a coroutine?",
    "How can I run a shell command and capture its output?",
    "When is a default argument evaluated?",
    "How does multiple inheritance decide which method is called?",
    "What does the global statement do?",
)
_CHANNEL_OPTIONS = (("grpc.max_receive_message_length", 64 * 1024 * 1024),)


@dataclass(frozen=True, slots=True)
class Sent:
    """One call: when it was planned and sent, how long it took from the planned time, and how it ended."""

    planned_ns: int  # since the start of the run
    late_ns: int
    latency_ns: int
    code: str  # OK, or the name of a status


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a run."""

    asked_rate: float  # calls a second
    achieved_rate: float  # calls that succeeded a second, until the last one ended
    sent: int
    codes: Mapping[str, int]
    latency: Quantiles
    client_lateness: Quantiles


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent, and when."""

    arrivals_ns: Sequence[int]  # since the start, increasing
    requests: Sequence[wire.RetrieveRequest]  # used in turn
    timeout_s: float
    metadata: tuple[tuple[str, str | bytes], ...]


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    questions = read_questions(arguments.queries) if arguments.queries else list(QUESTIONS)
    sent = run(_send_all(arguments, _plan(arguments, questions)))
    figures = summarise(sent, arguments.rate)
    _print(figures)
    _write(arguments, sent, figures)


def arrivals(rate: float, seconds: float, *, poisson: bool, seed: int) -> list[int]:
    """Returns planned send times in nanoseconds: evenly spaced, or with exponential gaps of the same mean."""
    draw = random.Random(seed)
    found: list[int] = []
    at_s = 0.0
    while at_s < seconds:
        found.append(int(at_s * 1e9))
        at_s += draw.expovariate(rate) if poisson else 1.0 / rate
    return found


def summarise(sent: Sequence[Sent], asked_rate: float) -> Summary:
    """Returns the figures of a run; latencies are those of calls that succeeded."""
    succeeded = [one for one in sent if one.code == "OK"]
    ended_ns = max((one.planned_ns + one.latency_ns for one in sent), default=0)
    return Summary(
        asked_rate=asked_rate,
        achieved_rate=len(succeeded) / (ended_ns / 1e9) if ended_ns else 0.0,
        sent=len(sent),
        codes=dict(Counter(one.code for one in sent)),
        latency=quantiles([one.latency_ns for one in succeeded]),
        client_lateness=quantiles([one.late_ns for one in sent]),
    )


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    made.add_argument("--target", required=True, metavar="ADDRESS", help="host:port, or unix:PATH")
    made.add_argument("--collection", required=True, metavar="NAME")
    made.add_argument("--rate", type=float, required=True, metavar="R", help="calls a second")
    made.add_argument("--seconds", type=float, default=10.0, metavar="S")
    made.add_argument("--queries", type=Path, metavar="FILE", help="JSON lines with `text`, or plain lines")
    made.add_argument("--arrivals", choices=("poisson", "fixed"), default="poisson")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--timeout-s", type=float, default=10.0, help="deadline of each call")
    made.add_argument("--top-k", type=int, default=10)
    made.add_argument("--rerank", action="store_true", help="ask for reranking")
    made.add_argument("--no-cache", action="store_true", help="leave the server's query cache out")
    made.add_argument("--api-key", default="", help="sent as a bearer token")
    return made.parse_args()


def _plan(arguments: argparse.Namespace, questions: Sequence[str]) -> Plan:
    asked = wire.RetrievalOptions()
    if arguments.rerank:
        asked.rerank = True
    if arguments.no_cache:
        asked.cache = False
    requests = [
        wire.RetrieveRequest(collection=arguments.collection, query=question, top_k=arguments.top_k, options=asked)
        for question in questions
    ]
    key = (("authorization", f"Bearer {arguments.api_key}"),) if arguments.api_key else ()
    planned = arrivals(arguments.rate, arguments.seconds, poisson=arguments.arrivals == "poisson", seed=arguments.seed)
    return Plan(planned, requests, arguments.timeout_s, key)


async def _send_all(arguments: argparse.Namespace, plan: Plan) -> list[Sent]:
    async with grpc.aio.insecure_channel(arguments.target, options=_CHANNEL_OPTIONS) as channel:
        await asyncio.wait_for(channel.channel_ready(), plan.timeout_s)
        stub = retrieval_pb2_grpc.RetrievalServiceStub(channel)
        started_ns = time.monotonic_ns()
        calls: list[asyncio.Task[Sent]] = []
        for number, planned_ns in enumerate(plan.arrivals_ns):
            await asyncio.sleep(max(0.0, (started_ns + planned_ns - time.monotonic_ns()) / 1e9))
            calls.append(asyncio.create_task(_send(stub, plan, number, started_ns)))
        return await asyncio.gather(*calls)


async def _send(stub: retrieval_pb2_grpc.RetrievalServiceAsyncStub, plan: Plan, number: int, started_ns: int) -> Sent:
    planned_ns = plan.arrivals_ns[number]
    late_ns = time.monotonic_ns() - started_ns - planned_ns
    code = grpc.StatusCode.OK
    try:
        request = plan.requests[number % len(plan.requests)]
        await stub.Retrieve(request, timeout=plan.timeout_s, metadata=plan.metadata)
    except grpc.aio.AioRpcError as error:
        code = error.code()
    return Sent(planned_ns, late_ns, time.monotonic_ns() - started_ns - planned_ns, code.name)


def _print(figures: Summary) -> None:
    rows: list[list[Cell]] = [
        [name, times.p50_ms, times.p95_ms, times.p99_ms, times.max_ms]
        for name, times in (
            ("latency from the planned time", figures.latency),
            ("the client's own lateness", figures.client_lateness),
        )
    ]
    print_table("Open loop, ms", ["", "p50", "p95", "p99", "max"], rows)
    print_table("Calls", ["code", "count"], list(figures.codes.items()))
    print_table("Calls a second", ["asked", "achieved"], [[figures.asked_rate, figures.achieved_rate]], digits=1)


def _write(arguments: argparse.Namespace, sent: Sequence[Sent], figures: Summary) -> None:
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(figures), None)
    if outputs.plot_file:
        ordered = sorted(sent, key=lambda one: one.planned_ns)
        titles = Titles("Latency from the planned send time", "planned send time, s", "ms")
        line = Line("call", [one.planned_ns / 1e9 for one in ordered], [one.latency_ns / 1e6 for one in ordered])
        plot_lines(outputs.plot_file, titles, [line], marks=False)


if __name__ == "__main__":
    main()
