"""What becomes of answers that their clients read slowly: the service's memory, and pieces that are put together.

Each client has a connection of its own, lets its transport read little ahead, as one behind a thin line does, and
leaves at the end with its answer unfinished. Each arm has a service and a model server of its own.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path

from bench._common.generate.asking import calls_from_child
from bench._common.generate.calls import Call
from bench._common.generate.plan import Plan
from bench._common.generate.settings import scripted_settings
from bench._common.generate.watching import peak_bytes, streams_open
from bench._common.generation.processes import counts_of, scripted_server
from bench._common.generation.script import Script
from bench._common.generation.serving import COLLECTION, Service, fill, served
from bench._common.memory import own_bytes
from bench._common.tables import Cell, print_table

_ENDLESS = 50_000
_WINDOW_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Arm:
    """How clients read, and what they are sent."""

    pause_ms: float  # of a client after each message
    token_ms: float  # between tokens of a stream
    token_chars: int


ARMS = {"keeps up": Arm(0.0, 8.0, 100), "slow": Arm(50.0, 8.0, 100), "stuck": Arm(3_600_000.0, 10.0, 4000)}
"""Clients that read as fast as they can, ones that read less often than tokens come, ones that read one message."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What clients read, and what that cost."""

    pieces: int  # messages that the clients read
    tokens_read: int
    tokens_sent: int  # by the model server, until it was held up
    tokens_meant: int  # that it would have sent if nothing had held it up
    chars_meant: int
    memory_before_bytes: int  # of the service, when all streams had begun
    memory_peak_bytes: int
    tokens_a_piece: float


@dataclass(frozen=True, slots=True)
class SlowReport:
    """All figures of a run."""

    streams: int
    seconds: float
    clients: dict[str, Arm]
    arms: dict[str, Reading]


def add_options(made: argparse.ArgumentParser) -> None:
    """Adds the options of this measurement."""
    made.add_argument("--streams", type=int, default=10, metavar="N", help="open at once")
    made.add_argument("--seconds", type=float, default=18.0, metavar="S", help="that each arm reads")


async def measure(arguments: argparse.Namespace) -> SlowReport:
    """Runs the arms, one after another."""
    folder: Path = arguments.cache / "generate"
    await fill(folder)
    arms = {name: await _run(arm, folder, arguments.streams, arguments.seconds) for name, arm in ARMS.items()}
    return SlowReport(arguments.streams, arguments.seconds, ARMS, arms)


async def _run(arm: Arm, folder: Path, streams: int, seconds: float) -> Reading:
    script = Script(
        slots=1000, prompt_ms_per_1k=0.0, token_ms=arm.token_ms, tokens=_ENDLESS, token_chars=arm.token_chars
    )
    with scripted_server(script) as model:
        async with served(folder, "slow", _settings(model)) as service:
            asking = asyncio.create_task(calls_from_child(_plan(arm, service, streams, seconds)))
            await streams_open(model, streams)
            before = own_bytes(service.pid)
            peak = await peak_bytes(service.pid, asking)
            counts = await asyncio.to_thread(counts_of, model)
            return reading(await asking, arm, counts.tokens, before, peak)


def reading(calls: list[Call], arm: Arm, sent: int, before: int, peak: int) -> Reading:
    """Returns the figures of clients that left at the end."""
    pieces, tokens = sum(call.pieces for call in calls), sum(call.tokens for call in calls)
    open_ns = sum(call.ended_ns - call.first_ns for call in calls if call.first_ns)
    meant = round(open_ns / 1e6 / arm.token_ms)
    return Reading(pieces, tokens, sent, meant, meant * arm.token_chars, before, peak, tokens / max(1, pieces))


def _settings(model: str) -> str:
    window = f"context_window_tokens = {2 * _ENDLESS}"
    return scripted_settings([model]).replace('model = "scripted"', f'model = "scripted"\n{window}')


def _plan(arm: Arm, service: Service, streams: int, seconds: float) -> Plan:
    return Plan(
        targets=[service.address],
        collection=COLLECTION,
        warm_s=0.0,
        seconds=seconds,
        streams=streams,
        tokens=_ENDLESS,
        connections=streams,
        pause_ms=arm.pause_ms,
        window_bytes=_WINDOW_BYTES,
        cut=True,
    )


def show(report: SlowReport) -> None:
    """Prints the figures."""
    rows: list[list[Cell]] = [
        ["tokens meant", *(one.tokens_meant for one in report.arms.values())],
        ["tokens sent", *(one.tokens_sent for one in report.arms.values())],
        ["tokens read", *(one.tokens_read for one in report.arms.values())],
        ["messages read", *(one.pieces for one in report.arms.values())],
        ["tokens a message", *(one.tokens_a_piece for one in report.arms.values())],
        ["MB meant", *(one.chars_meant / 1e6 for one in report.arms.values())],
        ["memory at first, MB", *(one.memory_before_bytes / 1e6 for one in report.arms.values())],
        ["memory at most, MB", *(one.memory_peak_bytes / 1e6 for one in report.arms.values())],
    ]
    title = f"{report.streams} clients for {report.seconds:g} s"
    print_table(title, ["", *report.arms], rows, digits=2)
