"""Asks for answers in open loop, in a process of its own, and writes the calls down as JSON.

python -m bench._common.overload.asking --target 127.0.0.1:50051 --rate 10 --seconds 30 --deadline-s 6 calls.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import grpc.aio

from bench._common.generation.children import written_by
from bench._common.loops import run
from bench._common.overload.calls import Call
from bench.load import QUESTIONS, arrivals
from headrace.v1 import retrieval_pb2 as wire
from headrace.v1 import retrieval_pb2_grpc

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked, and how often."""

    target: str
    collection: str
    rate: float  # calls a second, as a Poisson process
    seconds: float
    deadline_s: float
    seed: int = 1

    def arguments(self) -> list[str]:
        """Returns the command line that makes this load."""
        return [word for name, value in asdict(self).items() for word in (f"--{name.replace('_', '-')}", str(value))]


async def calls_from_child(load: Load) -> list[Call]:
    """Runs the load in a child process and returns its calls."""
    return [Call(**one) for one in await written_by("bench._common.overload.asking", load.arguments())]


async def ask_all(load: Load) -> list[Call]:
    """Sends each call at its planned time, whatever became of those before."""
    planned = arrivals(load.rate, load.seconds, poisson=True, seed=load.seed)
    async with grpc.aio.insecure_channel(load.target) as channel:
        await asyncio.wait_for(channel.channel_ready(), _PATIENCE_S)
        stub = retrieval_pb2_grpc.RetrievalServiceStub(channel)
        started_ns = time.monotonic_ns()
        calls: list[asyncio.Task[Call]] = []
        for number, planned_ns in enumerate(planned):
            await asyncio.sleep(max(0.0, (started_ns + planned_ns - time.monotonic_ns()) / 1e9))
            request = _request(load.collection, f"{QUESTIONS[number % len(QUESTIONS)]} (case {number})")
            calls.append(asyncio.create_task(_ask(stub, request, started_ns + planned_ns, load.deadline_s)))
        found = await asyncio.gather(*calls)
    return [_since(call, started_ns) for call in found]


async def _ask(
    stub: retrieval_pb2_grpc.RetrievalServiceAsyncStub, request: wire.GenerateRequest, due_ns: int, deadline_s: float
) -> Call:
    late_ns = time.monotonic_ns() - due_ns
    first_ns, queue_ns, code = 0, 0, grpc.StatusCode.OK
    try:
        async for event in stub.Generate(request, timeout=max(0.001, deadline_s - late_ns / 1e9)):
            if event.HasField("delta") and not first_ns:
                first_ns = time.monotonic_ns() - due_ns
            elif event.HasField("completed"):
                queue_ns = sum(stage.queue_ns for stage in event.completed.ledger.stages)
    except grpc.aio.AioRpcError as error:
        code = error.code()
    return Call(due_ns, late_ns, first_ns, time.monotonic_ns() - due_ns, code.name, queue_ns)


def _since(call: Call, started_ns: int) -> Call:
    return Call(**(asdict(call) | {"planned_ns": call.planned_ns - started_ns}))


def _request(collection: str, question: str) -> wire.GenerateRequest:
    alone = wire.RetrievalOptions(cache=False)  # neither known answers nor those of others who ask the same
    return wire.GenerateRequest(
        retrieve=wire.RetrieveRequest(collection=collection, query=question, top_k=3, options=alone)
    )


def parsed(words: Sequence[str]) -> Load:
    """Returns the load of a command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    made.add_argument("--target", required=True, metavar="ADDRESS")
    made.add_argument("--collection", required=True, metavar="NAME")
    made.add_argument("--rate", type=float, required=True)
    made.add_argument("--seconds", type=float, required=True)
    made.add_argument("--deadline-s", type=float, required=True)
    made.add_argument("--seed", type=int, default=1)
    return Load(**vars(made.parse_args(words)))


def main() -> None:
    """Runs the tool."""
    *words, path = sys.argv[1:]
    calls = run(ask_all(parsed(words)))
    Path(path).write_text(json.dumps([asdict(call) for call in calls]), encoding="utf-8")


if __name__ == "__main__":
    main()
