"""Times hits over gRPC beside an echo of the same bytes, in blocks of all questions, forwards and backwards (ABBA).

In blocks, since each way is served by a process of its own: taking turns call by call, every call found the processor's
caches cold, filled by the five other processes, which costs the larger process more and no server in service.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio

from bench._common.beir import BeirSet
from bench._common.cache.echo import RECORD, REPLAY, echo_server
from bench._common.cache.servers import Serving, serving
from bench._common.cache.times import ECHO, LatencyReport, Timed, latency_report
from bench._common.pipelines import KEY
from bench._common.tables import say
from headrace.v1 import common_pb2
from headrace.v1 import retrieval_pb2 as wire
from retrieval.settings import Settings

GENERATE = "/headrace.v1.RetrievalService/Generate"
_TIERS = {common_pb2.CACHE_TIER_MEMORY: "memory", common_pb2.CACHE_TIER_SHARED: "shared"}
_PATIENCE_S = 60.0
_CHANNEL_OPTIONS = (("grpc.max_receive_message_length", 64 * 1024 * 1024),)


@dataclass(frozen=True, slots=True)
class Way:
    """One thing that is timed: what is called, with which bytes, and what the reply must say to count."""

    name: str
    call: Callable[..., Any]
    control: wire.CacheControl
    counts: Callable[[Sequence[bytes]], bool]

    def request(self, question: str) -> bytes:
        """Returns the bytes that are sent."""
        asked = wire.RetrieveRequest(collection=KEY.collection, query=question, cache_control=self.control)
        return wire.GenerateRequest(retrieve=asked).SerializeToString()

    async def ask(self, question: str) -> tuple[int, list[bytes]]:
        """Returns how long the whole stream took, in nanoseconds, and its messages as bytes."""
        request = self.request(question)
        started = time.perf_counter_ns()
        messages = [message async for message in self.call(request, timeout=_PATIENCE_S)]
        return time.perf_counter_ns() - started, messages


@dataclass(slots=True)
class _Turns:
    """The ways that take turns, with the times so far."""

    ways: Sequence[Way]
    timed: dict[str, list[Timed]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    async def take(self, questions: Sequence[str], number: int) -> None:
        for way in self.ways if number % 2 else reversed(self.ways):
            for question in questions:
                await self._time(way, question)

    async def _time(self, way: Way, question: str) -> None:
        taken_ns, messages = await way.ask(question)
        if way.counts(messages):
            told = wire.Completed() if way.name == ECHO else completed_of(messages)
            self.timed.setdefault(way.name, []).append(Timed(question, taken_ns, told))
        else:
            self.left_out[way.name] = self.left_out.get(way.name, 0) + 1


async def measure_latency(
    source: BeirSet, questions: int, rounds: int, settings: Settings, encodings: Path
) -> LatencyReport:
    """Asks each question once on every server to fill its caches, then times them beside the echo."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
        addresses = await stack.enter_async_context(serving(folder, source, settings, encodings))
        channels = {name: await _channel(stack, address) for name, (address, _) in addresses.items()}
        echo = await _channel(stack, stack.enter_context(echo_server()))
        ways = [_hit(name, channels[name], way) for name, (_, way) in addresses.items()]
        miss = Way("miss", _raw(channels["evidence"], GENERATE), _FRESH, lambda messages: not _reused(messages))
        texts = [question.text for question in source.questions[:questions]]
        kept = [text for text in texts if await _warm([*ways, miss], text, echo)]
        say(f"{len(kept)} of {len(texts)} questions are answered with a citation, and so kept")
        turns = _Turns([Way(ECHO, _raw(echo, REPLAY), wire.CacheControl(), lambda messages: True), *ways, miss])
        for number in range(2 * rounds):
            await turns.take(kept, number)
    return latency_report(turns.timed, turns.left_out, len(kept))


_FRESH = wire.CacheControl(no_cache=True, no_store=True)


async def _channel(stack: AsyncExitStack, address: str) -> grpc.aio.Channel:
    return await stack.enter_async_context(grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS))


def _raw(channel: grpc.aio.Channel, method: str) -> Callable[..., Any]:
    return channel.unary_stream(method)


def _hit(name: str, channel: grpc.aio.Channel, way: Serving) -> Way:
    return Way(name, _raw(channel, GENERATE), wire.CacheControl(), lambda messages: _serves(messages, way))


async def _warm(ways: Sequence[Way], text: str, echo: grpc.aio.Channel) -> bool:
    """Fills the caches, twice so that each way is as warm as it gets, and records a hit's bytes for the echo."""
    for way in ways:
        for _ in range(2):
            _, messages = await way.ask(text)
        if not way.counts(messages):
            return False
    way = ways[0]
    _, messages = await way.ask(text)
    parts: Mapping[int, bytes] = dict(enumerate([way.request(text), *messages]))

    async def recording() -> AsyncIterator[bytes]:
        for part in parts.values():
            yield part

    record: Callable[..., Any] = echo.stream_unary(RECORD)
    await record(recording())
    return True


def completed_of(messages: Sequence[bytes]) -> wire.Completed:
    """Returns the end of a stream; empty when it is none."""
    return wire.GenerateResponse.FromString(messages[-1]).completed if messages else wire.Completed()


def _serves(messages: Sequence[bytes], way: Serving) -> bool:
    reuse = completed_of(messages).reuse
    return (
        reuse.kind == wire.REUSE_KIND_EQUAL
        and _TIERS.get(reuse.tier) == way.tier
        and reuse.evidence.trusted is way.trusted
    )


def _reused(messages: Sequence[bytes]) -> bool:
    return completed_of(messages).reuse.kind != wire.REUSE_KIND_UNSPECIFIED
