"""Measures what the order of passages saves of a model server's work, on the Zipf trace of conversations.

Each request of the trace goes through the product's retrieval, and its prompt, in its final words, to a simulated
server that keeps the tokens of prompts and forgets the least recently used. Arms: by relevance, sorted by what the
passages are, and prefix order as the product has it; relevance and prefix once more with passages below the largest gap
left out. Beside them: what no order can avoid, since the passage is not cached at all, and the share of requests whose
context holds a document with the answer. Reordering leaves the passages as they are; the tool checks it.

With `--llama` a sample goes to real llama.cpp servers, one for each order: requests about the questions asked most, so
that prompts share something within a sample. Its figures say how time to first token follows uncached tokens, and
whether the simulation is right, rather than what a long trace saves.

    python -m bench.prefix --data ../shared/data --set squad-sub --json bench/results/prefix-squad.json
    python -m bench.prefix --data ../shared/data --set squad-sub --llama SmolLM2.gguf --sample 60
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench._common import options
from bench._common.loops import run
from bench._common.prefix.arms import ARMS, RELEVANCE, Contexts
from bench._common.prefix.questions import Asked, ask_all, hottest
from bench._common.prefix.real import RealFigures, measure_real
from bench._common.prefix.simulating import ArmFigures, Server, simulate
from bench._common.results import Json, plain, write_results
from bench._common.tables import Cell, print_table, say
from bench._common.traces.events import Law
from retrieval.settings import Settings
from retrieval.telemetry.log import configure_log
from retrieval.token_counters import open_counter


def main() -> None:
    """Runs the tool."""
    configure_log("warning", "console")
    arguments = _arguments()
    settings = options.settings(arguments, {"index.kind": "exact"})
    law = Law(requests=arguments.requests)
    folder = arguments.data / arguments.set
    asked = run(ask_all(folder, law, arguments.seed, arguments.top_k, settings, arguments.cache))
    simulated = _simulate(arguments, asked, settings)
    _print(arguments.set, simulated)
    real = _real(arguments, asked, settings) if arguments.llama else []
    if real:
        _print_real(arguments.set, real)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, _json(arguments, simulated, real), settings)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    made.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder of the handed sets")
    made.add_argument("--set", default="squad-sub", metavar="NAME", help="a set in it")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--requests", type=int, default=Law().requests, metavar="N")
    made.add_argument("--top-k", type=int, default=10, metavar="N", help="hits of a request")
    made.add_argument("--context-tokens", type=int, default=1500, metavar="N", help="of a simulated prompt at most")
    made.add_argument("--capacity", type=int, default=65_536, metavar="N", help="tokens that a server keeps cached")
    made.add_argument("--llama", type=Path, metavar="FILE", help="a GGUF model for the real servers")
    made.add_argument("--sample", type=int, default=60, metavar="N", help="requests to each real server")
    made.add_argument("--hot", type=int, default=10, metavar="N", help="questions that the sample is about")
    made.add_argument("--real-context-tokens", type=int, default=600, metavar="N", help="of a real prompt at most")
    return made.parse_args()


def _simulate(arguments: argparse.Namespace, asked: Sequence[Asked], settings: Settings) -> list[ArmFigures]:
    counter = open_counter(settings.context.tokenizer, knows_passages=True)
    contexts = Contexts(settings, counter, arguments.context_tokens)
    server = Server(arguments.capacity, counter, settings.generation.instructions)
    figures = list[ArmFigures]()
    for arm in ARMS:
        figures.append(simulate(arm, asked, contexts, server))
        say(f"{arm.name}: {figures[-1].uncached_tokens:.0f} uncached tokens a request")
    return figures


def _real(arguments: argparse.Namespace, asked: Sequence[Asked], settings: Settings) -> list[RealFigures]:
    sample = hottest(asked, arguments.hot, arguments.sample)
    return run(measure_real(arguments.llama, sample, settings, arguments.capacity, arguments.real_context_tokens))


def ratios(simulated: Sequence[ArmFigures]) -> Mapping[str, float]:
    """Returns the uncached tokens of each arm over those of relevance order with all passages."""
    base = next(one.uncached_tokens for one in simulated if one.arm == RELEVANCE.name)
    return {one.arm: one.uncached_tokens / base if base else 1.0 for one in simulated}


def _print(name: str, simulated: Sequence[ArmFigures]) -> None:
    compared = ratios(simulated)
    tokens: list[list[Cell]] = [
        [one.arm, one.passages, one.prompt_tokens, one.uncached_tokens, compared[one.arm], one.least_uncached_tokens]
        for one in simulated
    ]
    columns = ["order", "passages", "prompt", "uncached", "ratio", "no order avoids"]
    print_table(f"{name}: tokens a request, simulated", columns, tokens, digits=2)
    beside: list[list[Cell]] = [
        [one.arm, "yes" if one.same_passages else "no", one.gold_share, one.arrange.p50_ms, one.arrange.p99_ms]
        for one in simulated
    ]
    columns = ["order", "same passages", "answer there", "arrange p50 ms", "p99"]
    print_table(f"{name}: what else", columns, beside)


def _print_real(name: str, real: Sequence[RealFigures]) -> None:
    rows: list[list[Cell]] = [
        [
            one.arm,
            one.requests,
            one.prompt_tokens,
            one.uncached_tokens,
            one.simulated_uncached_tokens,
            one.mean_first_token_ms,
            one.first_token.p50_ms,
            one.first_token.p95_ms,
        ]
        for one in real
    ]
    columns = ["order", "requests", "prompt", "uncached", "simulated", "mean TTFT ms", "p50", "p95"]
    print_table(f"{name}: real servers", columns, rows, digits=1)


def _json(
    arguments: argparse.Namespace, simulated: Sequence[ArmFigures], real: Sequence[RealFigures]
) -> Mapping[str, Json]:
    return {
        "set": arguments.set,
        "capacity_tokens": arguments.capacity,
        "simulated": [plain(one) for one in simulated],
        "ratio_to_relevance": {name: round(value, 4) for name, value in ratios(simulated).items()},
        "real": [plain(one) for one in real],
    }


if __name__ == "__main__":
    main()
