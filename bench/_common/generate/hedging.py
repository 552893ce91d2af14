"""What a second request does for the slowest callers, when model servers stall now and then.

Two services run side by side, one that hedges and one that does not, each with two model servers of its own that play
the same script. They get calls in turn from one load generator, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench._common.generate.asking import calls_from_child
from bench._common.generate.figures import Tail, tail
from bench._common.generate.plan import Plan
from bench._common.generate.settings import scripted_settings
from bench._common.generation.processes import counts_of, scripted_server
from bench._common.generation.script import Script
from bench._common.generation.serving import COLLECTION, fill, served
from bench._common.tables import Cell, print_table

ARMS = {"alone": "false", "hedged": "true"}
"""The setting `hedge` of each arm."""

P99_RATIO, EXTRA_SHARE = 3.0, 0.05
"""What is aimed at: p99 so many times lower, for no more than this share of requests."""

_REPLICAS = 2
_WARM_S = 6.0


@dataclass(frozen=True, slots=True)
class HedgingReport:
    """All figures of a run."""

    script: dict[str, int | float]
    rate: float  # calls a second to each service
    arms: dict[str, Tail]
    p99_ratio: float  # of the arm without hedging to the one with it


def add_options(made: argparse.ArgumentParser) -> None:
    """Adds the options of this measurement."""
    Script.add_options(made)
    made.set_defaults(slots=1000, prompt_ms_per_1k=200.0, prompt_spread=0.25, token_ms=5.0, tokens=5)
    made.set_defaults(stall_share=0.02, stall_s=2.0)
    made.add_argument("--rate", type=float, default=38.0, metavar="R", help="calls a second to each service")
    made.add_argument("--seconds", type=float, default=54.0, metavar="S", help="in which calls are counted")


async def measure(arguments: argparse.Namespace) -> HedgingReport:
    """Runs both arms at once."""
    script = Script.of(arguments)
    targets, models = list[str](), dict[str, list[str]]()
    async with AsyncExitStack() as stack:
        for place, (arm, hedge) in enumerate(ARMS.items()):
            folder: Path = arguments.cache / "generate" / arm
            await fill(folder)
            scripts = [script.again(script.seed + _REPLICAS * place + number) for number in range(_REPLICAS)]
            models[arm] = [stack.enter_context(scripted_server(one)) for one in scripts]
            settings = scripted_settings(models[arm], f"[generation.resilience]\nhedge = {hedge}\n")
            targets.append((await stack.enter_async_context(served(folder, arm, settings))).address)
        calls = await calls_from_child(_plan(arguments, targets))
        arms = {
            arm: tail(
                [call for call in calls if call.target == place and call.planned_ns >= _WARM_S * 1e9],
                requests=sum(counts_of(model).requests for model in models[arm]),
                asked=sum(call.target == place for call in calls),
            )
            for place, arm in enumerate(ARMS)
        }
    return HedgingReport(
        script={name: getattr(script, name) for name in Script.__dataclass_fields__},
        rate=arguments.rate,
        arms=arms,
        p99_ratio=p99_ratio(arms),
    )


def p99_ratio(arms: dict[str, Tail]) -> float:
    """Returns how many times lower the p99 is with hedging."""
    return arms["alone"].p99_ms / max(1e-9, arms["hedged"].p99_ms)


def _plan(arguments: argparse.Namespace, targets: list[str]) -> Plan:
    # The calls that fill the windows of the services' figures are counted where requests are, and not in the times.
    return Plan(
        targets=targets,
        collection=COLLECTION,
        warm_s=0.0,
        seconds=_WARM_S + arguments.seconds,
        rate=len(targets) * arguments.rate,
        tokens=arguments.tokens,
    )


def show(report: HedgingReport) -> None:
    """Prints the figures beside what is aimed at."""
    rows: list[list[Cell]] = [
        [arm, one.calls, one.p50_ms, one.p99_ms, one.p999_ms, f"{one.hedged_share:.2%}", f"{one.extra_share:.2%}"]
        for arm, one in report.arms.items()
    ]
    stalls = f"{report.script['stall_share']:.0%} of requests stall for {report.script['stall_s']:g} s"
    columns = ["", "calls", "p50", "p99", "p99.9", "hedged", "extra requests"]
    print_table(f"Time to the first piece, ms; {stalls}", columns, rows, digits=0)
    failed = {arm: one.codes for arm, one in report.arms.items() if one.codes}
    aims: list[list[Cell]] = [
        ["p99, times lower", report.p99_ratio, f">= {P99_RATIO:g}"],
        ["extra requests, share", report.arms["hedged"].extra_share, f"<= {EXTRA_SHARE:g}"],
    ]
    print_table(f"Summary; not answered: {failed or 'none'}", ["", "measured", "aim"], aims)
