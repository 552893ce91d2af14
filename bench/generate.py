"""Measures what generation must reach: our share of the time to the first token, hedging, slow clients, a real model.

    python -m bench.generate streams --json bench/results/generate_streams.json

- `streams`: the own share of the time to the first token, and the cost of relaying, with many streams open;
- `hedging`: the slowest callers' times with stalling model servers, with and without second requests;
- `slow`: memory, and pieces put together, where clients read slowly;
- `smollm2`: the time to the first token of an embedded model, cold and with its prompt cached.

Load generator, service and model server are processes of their own. The model server plays a script.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from bench._common import options
from bench._common.generate import hedging, slow, smollm2, streams
from bench._common.loops import run
from bench._common.results import plain, write_results


@dataclass(frozen=True, slots=True)
class _Measurement:
    add_options: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace], Coroutine[Any, Any, Any]]
    show: Callable[[Any], None]


_MEASUREMENTS = {
    "streams": _Measurement(streams.add_options, streams.measure, streams.show),
    "hedging": _Measurement(hedging.add_options, hedging.measure, hedging.show),
    "slow": _Measurement(slow.add_options, slow.measure, slow.show),
    "smollm2": _Measurement(smollm2.add_options, smollm2.measure, smollm2.show),
}


def main() -> None:
    """Runs the tool."""
    arguments = parsed()
    chosen = _MEASUREMENTS[arguments.figures]
    report = run(chosen.measure(arguments))
    chosen.show(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), None)


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    """Returns the options of a command line, the process's own unless words are given."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    chosen = made.add_subparsers(dest="figures", required=True)
    for name, one in _MEASUREMENTS.items():
        one.add_options(chosen.add_parser(name, parents=[options.parser(None)], conflict_handler="resolve"))
    return made.parse_args(words)


if __name__ == "__main__":
    main()
