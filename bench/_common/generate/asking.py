"""Asks services for answers as a plan says, in a process of its own, and writes the calls down as JSON.

    python -m bench._common.generate.asking '{"targets": ["127.0.0.1:50051"], "collection": "python", ...}' calls.json

A seat is a stream that is always open: when an answer ends, the next question is asked. Lengths of answers are drawn,
so that seats do not stay in step.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

import grpc.aio

from bench._common.generate.calls import Call
from bench._common.generate.plan import Plan
from bench._common.generation.children import written_by
from bench._common.loops import run
from bench.load import QUESTIONS, arrivals
from headrace.v1 import retrieval_pb2 as wire
from headrace.v1 import retrieval_pb2_grpc

Stub: TypeAlias = "retrieval_pb2_grpc.RetrievalServiceAsyncStub"

_PATIENCE_S = 60.0


async def calls_from_child(plan: Plan) -> list[Call]:
    """Runs the plan in a child process and returns the calls that were planned while it counted."""
    found = await written_by("bench._common.generate.asking", [json.dumps(asdict(plan))])
    return [Call(**one) for one in found]


async def ask_all(plan: Plan) -> list[Call]:
    """Makes the caches of retrieval warm, then sends the calls; returns those that were planned while it counted."""
    async with AsyncExitStack() as stack:
        stubs = list[Stub]()
        for target in plan.targets * plan.connections:
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(target, options=_options(plan)))
            await asyncio.wait_for(channel.channel_ready(), _PATIENCE_S)
            stubs.append(retrieval_pb2_grpc.RetrievalServiceStub(channel))
        for stub in stubs[: len(plan.targets)]:
            for number in range(plan.questions * plan.repeats):
                await stub.Retrieve(_retrieve(plan, number), timeout=_PATIENCE_S)
        asking = _Asking(plan, stubs)
        await (asking.seats() if plan.streams else asking.stream_of_calls())
        return [call for call in asking.calls if plan.warm_s * 1e9 <= call.planned_ns < plan.whole_s * 1e9]


class _Asking:
    """A run of a plan, from now on."""

    def __init__(self, plan: Plan, stubs: list[Stub]) -> None:
        self.calls: list[Call] = []
        self._plan, self._stubs = plan, stubs
        self._draw = random.Random(plan.seed)
        self._start_ns = time.monotonic_ns()
        self._end_s = asyncio.get_running_loop().time() + plan.whole_s

    async def seats(self) -> None:
        """Keeps the streams open until the end."""
        await asyncio.gather(*(self._seat(place) for place in range(self._plan.streams)))

    async def stream_of_calls(self) -> None:
        """Sends each call at its planned time, whatever became of those before."""
        async with asyncio.TaskGroup() as group:
            for planned_ns in arrivals(self._plan.rate, self._plan.whole_s, poisson=True, seed=self._plan.seed):
                await asyncio.sleep((self._start_ns + planned_ns - time.monotonic_ns()) / 1e9)
                group.create_task(self._ask(planned_ns))

    async def _seat(self, place: int) -> None:
        await asyncio.sleep(self._plan.ramp_s * place / self._plan.streams)
        while (now_ns := time.monotonic_ns() - self._start_ns) < self._plan.whole_s * 1e9 and not self._asked_enough:
            await self._ask(now_ns)
            await asyncio.sleep(self._draw.uniform(0.0, self._plan.think_ms) / 1e3)

    @property
    def _asked_enough(self) -> bool:
        return 0 < self._plan.most <= len(self.calls)

    async def _ask(self, planned_ns: int) -> None:
        number = len(self.calls)
        target = number % len(self._plan.targets)
        call = Call(target, planned_ns, self._start_ns + planned_ns, time.monotonic_ns())
        self.calls.append(call)
        try:
            async with asyncio.timeout_at(self._end_s if self._plan.cut else None):
                await self._read(call, self._stubs[number % len(self._stubs)], self._request(number))
            call.code = grpc.StatusCode.OK.name
        except TimeoutError:
            call.code = "CUT"
        except grpc.aio.AioRpcError as error:
            call.code = error.code().name
        call.ended_ns = time.monotonic_ns()

    async def _read(self, call: Call, stub: Stub, request: wire.GenerateRequest) -> None:
        call.sent_ns = time.monotonic_ns()
        async for event in stub.Generate(request, timeout=self._plan.timeout_s):
            if event.HasField("delta"):
                call.read_piece(event.delta.text, time.monotonic_ns())
            elif event.HasField("completed"):
                call.read_ledger(event.completed.ledger)
                call.prompt_tokens = event.completed.usage.prompt_tokens
                call.cached_tokens = event.completed.usage.cached_prompt_tokens
            if self._plan.pause_ms and call.pieces:
                await asyncio.sleep(self._plan.pause_ms / 1e3)

    def _request(self, number: int) -> wire.GenerateRequest:
        tokens = max(1, round(self._plan.tokens * self._draw.lognormvariate(0.0, self._plan.spread)))
        return wire.GenerateRequest(retrieve=_retrieve(self._plan, number), max_output_tokens=tokens)


def _retrieve(plan: Plan, number: int) -> wire.RetrieveRequest:
    question = number // plan.repeats % plan.questions
    text = f"{QUESTIONS[question % len(QUESTIONS)]} (case {question})"
    return wire.RetrieveRequest(collection=plan.collection, query=text, top_k=3)


def _options(plan: Plan) -> list[tuple[str, int]]:
    # Channels of one process would else share their connections.
    options = [("grpc.use_local_subchannel_pool", 1)]
    if plan.window_bytes:
        options += [("grpc.http2.lookahead_bytes", plan.window_bytes), ("grpc.http2.bdp_probe", 0)]
    return options


def main() -> None:
    """Runs the tool."""
    calls = run(ask_all(Plan(**json.loads(sys.argv[1]))))
    Path(sys.argv[2]).write_text(json.dumps([asdict(call) for call in calls]), encoding="ascii")


if __name__ == "__main__":
    main()
