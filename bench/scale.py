"""Computes what 10^8 and 10^9 chunks cost, from unit costs that it measures here: machines, memory, hours.

Real passages go through the product's parsers, chunker, encoder, record, generations and driver, at a few sizes. What
a chunk takes is multiplied by formulas (`bench/_common/scale/formulas.py`); `docs/scale.md` is written from them:

    python -m bench.scale --corpus FILE --queries FILE --further 10000 30000 100000 --json bench/results/scale.json
    python -m bench.scale --costs bench/results/scale.json --into docs/scale.md

The first command measures (about eight minutes on two cores, four more the first time, when the further passages are
not encoded yet), the second one writes the figures into the paper.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

from bench._common import options
from bench._common.engines import open_encoders
from bench._common.loops import run
from bench._common.passages import read_passages, read_questions
from bench._common.pools import encode_all
from bench._common.results import plain, write_results
from bench._common.scale.costs import Costs, Encoding, costs_of
from bench._common.scale.driver import encode, measure_driver
from bench._common.scale.encoding import measure_rates
from bench._common.scale.further import measure_further
from bench._common.scale.paper import sections, written_into
from bench._common.scale.reading import measure_reading
from bench._common.scale.remembering import measure_remembered
from bench._common.scale.serving import save_questions
from bench._common.scale.storing import grow
from bench._common.scale.wire import measure_wire
from bench._common.tables import say
from encoders.terms import count_terms
from encoders.types import TextKind
from retrieval.settings import Settings

_SIZES = (5_000, 10_000, 20_000)  # below some 6,700 chunks the engine makes no graph
_READ = 2_000
_ENCODED = 400
_DRIVEN = 1_000
_QUESTIONS = 200


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("--corpus", type=Path, metavar="FILE", help="JSON lines of documents; .gz too")
    made.add_argument("--queries", type=Path, metavar="FILE", help="questions; JSON lines or plain lines")
    made.add_argument("--chunks", type=int, nargs="+", default=list(_SIZES), metavar="N", help="sizes to measure at")
    made.add_argument("--further", type=int, nargs="*", default=[], metavar="N", help="larger sizes, of cut passages")
    made.add_argument("--costs", type=Path, metavar="FILE", help="unit costs of an earlier run, instead of measuring")
    made.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    made.add_argument("--into", type=Path, metavar="FILE", help="write them between the marks of this paper")
    arguments = made.parse_args()
    costs = _read(arguments.costs) if arguments.costs else _measured(arguments)
    made_sections = sections(costs)
    if arguments.into:
        text = written_into(arguments.into.read_text(encoding="utf-8"), made_sections)
        arguments.into.write_text(text, encoding="utf-8")
        say(f"{arguments.into} has the figures")
    elif arguments.markdown or not arguments.json:
        print("\n\n".join(made_sections.values()))


def _read(path: Path) -> Costs:
    try:
        return costs_of(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise SystemExit(f"{path} is not there; measure first, with --corpus and --queries") from None
    except (KeyError, TypeError) as error:
        raise SystemExit(f"{path} is of another version of this tool ({error}); measure again") from None


def _measured(arguments: argparse.Namespace) -> Costs:
    for name in ("corpus", "queries"):
        path: Path | None = getattr(arguments, name)
        if path is None:
            raise SystemExit(f"--{name} FILE is missing; --costs FILE computes from an earlier run without it")
        if not path.is_file():
            raise SystemExit(f"--{name}: {path} is not there; the data are not part of this repository")
    settings = options.settings(arguments, {})
    costs = run(_measure(arguments, settings))
    if arguments.json:
        write_results(arguments.json, plain(costs), settings)
    return costs


async def _measure(arguments: argparse.Namespace, settings: Settings) -> Costs:
    load = os.getloadavg()[0]
    remembered = measure_remembered()
    documents = read_passages(arguments.corpus, _READ)
    questions = read_questions(arguments.queries, _QUESTIONS)
    with tempfile.TemporaryDirectory(prefix="headrace-scale-") as place:
        folder = Path(place)
        async with open_encoders(settings, arguments.cache) as encoders:
            reading = measure_reading(folder, documents, encoders)
            rates = await measure_rates(settings, encoders, documents[:_ENCODED])
            say(f"{rates.all:,.0f} tokens/s bare, {rates.one:,.0f} on one thread")
            encoded = await encode(documents[:_DRIVEN], settings, encoders, folder / "driven")
            wire = measure_wire(encoded, encoders)
            driver = await measure_driver(encoded, settings, encoders, folder / "driven")
            say(
                f"driver: {driver.new_ms:.2f} ms a new document; a chunk's message takes the client {wire.write_ms:.2f}"
            )
            asked = folder / "questions.npz"
            vectors = await encode_all(encoders.dense, questions, TextKind.QUERY)
            save_questions(asked, vectors, [count_terms(text) for text in questions], encoders.dense)
            grown = await grow(folder, arguments.corpus, sorted(arguments.chunks), settings, encoders, asked)
            further = sorted(arguments.further)
            larger = await measure_further(folder, arguments.corpus, further, settings, encoders, asked)
            codec = encoders.dense.codec
            encoding = Encoding(
                dim=encoders.dense.dim,
                token_dim=codec.dim if codec else 0,
                token_code_bytes=codec.code_bytes if codec else 0,
                cores=rates.cores,
                tokens_a_chunk=grown.tokens / grown.sizes[-1].chunks,
                token_vectors_a_chunk=grown.token_vectors_a_chunk,
                bare_one_tokens_per_s=rates.one,
                bare_all_tokens_per_s=rates.all,
                indexer_tokens_per_s=grown.tokens / grown.seconds,
                opening_s=rates.opening_s,
            )
    return Costs(encoding, reading, grown.record, grown.sizes, larger, driver, wire, remembered, load)


if __name__ == "__main__":
    main()
