"""The time to the first token of a real model, embedded, through the whole service: cold, and asked again at once.

A question that is asked again has the same prompt, whose keys and values the model still holds. Retrieval's caches are
warm both times, answers are not cached. One call at a time, since the model computes with one thread.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from bench._common.generate.asking import calls_from_child
from bench._common.generate.calls import Call
from bench._common.generate.figures import OK
from bench._common.generate.plan import Plan
from bench._common.generate.settings import settings_over
from bench._common.generation.serving import COLLECTION, fill, served
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import Cell, print_table

_OUTPUT_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Asked:
    """Calls of one kind; tokens are means a call."""

    calls: int
    prompt_tokens: float
    cached_tokens: float  # as llama.cpp says
    first_piece: Quantiles  # as the client saw it
    model: Quantiles  # the part of it that the model takes
    rest: Quantiles  # the part of it that retrieval and the service take
    token: Quantiles  # between later tokens


@dataclass(frozen=True, slots=True)
class SmolReport:
    """All figures of a run."""

    model: str
    threads: int
    cold: Asked
    repeated: Asked


def add_options(made: argparse.ArgumentParser) -> None:
    """Adds the options of this measurement."""
    made.add_argument("--llama", default="smollm2", metavar="NAME_OR_PATH", help="the model, or its GGUF file")
    made.add_argument("--threads", type=int, default=1, metavar="N", help="that the model computes with")
    made.add_argument("--questions", type=int, default=6, metavar="N", help="each asked twice")
    made.add_argument("--seconds", type=float, default=70.0, metavar="S", help="in which questions are begun")


async def measure(arguments: argparse.Namespace) -> SmolReport:
    """Asks each question twice."""
    folder: Path = arguments.cache / "generate"
    await fill(folder)
    async with served(folder, "llama", _settings(arguments.llama, arguments.threads)) as service:
        plan = Plan(
            targets=[service.address],
            collection=COLLECTION,
            warm_s=0.0,
            seconds=arguments.seconds,
            streams=1,
            tokens=_OUTPUT_TOKENS,
            questions=arguments.questions,
            repeats=2,
            most=2 * arguments.questions,
            timeout_s=120.0,
        )
        calls = await calls_from_child(plan)
    if not all(call.code == OK for call in calls):
        raise SystemExit(f"not all calls were answered: {[call.code for call in calls]}")
    cold, repeated = calls[::2], calls[1::2]
    return SmolReport(Path(arguments.llama).name, arguments.threads, asked(cold), asked(repeated))


def asked(calls: list[Call]) -> Asked:
    """Returns the figures of calls."""
    count = max(1, len(calls))
    return Asked(
        calls=len(calls),
        prompt_tokens=sum(call.prompt_tokens for call in calls) / count,
        cached_tokens=sum(call.cached_tokens for call in calls) / count,
        first_piece=quantiles([call.first_ns - call.sent_ns for call in calls]),
        model=quantiles([call.model_ns for call in calls]),
        rest=quantiles([call.first_ns - call.sent_ns - call.model_ns for call in calls]),
        token=quantiles([call.token_ns for call in calls]),
    )


def _settings(model: str, threads: int) -> str:
    name = str(Path(model).resolve()) if Path(model).exists() else model
    return settings_over(
        f'kind = "llama"\nmodel = "{name}"\nthreads = {threads}\nmax_concurrent = 1\ncontext_window_tokens = 2048\n'
        "first_token_timeout_s = 120.0\n"
    )


def show(report: SmolReport) -> None:
    """Prints the figures."""
    kinds = (report.cold, report.repeated)
    rows: list[list[Cell]] = [
        ["calls", *(one.calls for one in kinds)],
        ["prompt tokens", *(one.prompt_tokens for one in kinds)],
        ["cached tokens", *(one.cached_tokens for one in kinds)],
        ["first piece p50", *(one.first_piece.p50_ms for one in kinds)],
        ["first piece at most", *(one.first_piece.max_ms for one in kinds)],
        ["model's part p50", *(one.model.p50_ms for one in kinds)],
        ["the rest p50", *(one.rest.p50_ms for one in kinds)],
        ["a later token p50", *(one.token.p50_ms for one in kinds)],
    ]
    title = f"{report.model}, {report.threads} thread(s), ms"
    print_table(title, ["", "cold prompt", "repeated"], rows, digits=1)
