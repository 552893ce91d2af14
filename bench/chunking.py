"""Compares ways of cutting documents by what the context holds: recall of answer spans at equal token budgets.

Paragraphs of one title are joined into an article, so that there is something to cut; each question's answer is a span
of the paragraph that it was asked about. A question counts when a passage of the context covers that span whole. All
arms go through the same request path: hybrid search, late interaction, assembly within the budget.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench._common import options
from bench._common.beir import BeirSet, Question, Split, read_set
from bench._common.engines import Encoders, open_encoders
from bench._common.loops import run
from bench._common.pipelines import KEY, open_request_path
from bench._common.plots import Titles, plot_bars
from bench._common.results import write_results
from bench._common.statistics import mean_difference
from bench._common.tables import Cell, print_table, say
from indexers.ingest import Indexer
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.pipeline import Pipeline
from retrieval.server.engines import chunker_of
from retrieval.settings import Settings
from retrieval.settings.engines import ChunkingSettings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Expansion, RetrieveRequest, Span

_BREAK = "\n\n"
_HITS = 50
_PATIENCE_S = 600.0
_SERVED = "structure, header"


@dataclass(frozen=True, slots=True)
class Arm:
    """A way of cutting, and of widening what is found."""

    limit_tokens: int = 256
    structure: bool = True  # False cuts running text at a fixed size
    header: bool = True  # whether title and headings are embedded with each chunk
    expansion: Expansion | None = None


ARMS: Mapping[str, Arm] = {
    "fixed size": Arm(structure=False, header=False),
    "structure": Arm(header=False),
    _SERVED: Arm(),
    "128 tokens": Arm(limit_tokens=128),
    "128 tokens, window": Arm(limit_tokens=128, expansion=Expansion(2, 512)),
    "128 tokens, section": Arm(limit_tokens=128, expansion=Expansion(0, 512)),
    "structure, header, window": Arm(expansion=Expansion(2, 512)),
    "structure, header, section": Arm(expansion=Expansion(0, 512)),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with where its answer stands."""

    text: str
    document_id: str
    spans: tuple[Span, ...]  # any of them will do


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    options.add_set_options(made, Split.TEST)
    made.add_argument("--budgets", default="250,500,1000,2000", help="tokens of context")
    arguments = made.parse_args()
    budgets = [int(text) for text in arguments.budgets.split(",")]
    settings = options.settings(arguments, {})
    figures = {}
    for folder in arguments.sets:
        source = read_set(folder, arguments.qrels).part(arguments.split, arguments.limit)
        found = run(_measure(arguments, settings, source, budgets))
        _print(source.name, budgets, found)
        figures[source.name] = {
            arm: {str(budget): float(np.mean(values[budget])) for budget in budgets} for arm, values in found.items()
        }
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, figures, settings)
    if outputs.plot_file:
        name, arms = next(iter(figures.items()))
        series = {arm: list(values.values()) for arm, values in arms.items()}
        titles = Titles(f"Answer spans in the context, {name}", "tokens", "recall")
        plot_bars(outputs.plot_file, titles, list(map(str, budgets)), series)


async def _measure(
    arguments: argparse.Namespace, settings: Settings, source: BeirSet, budgets: Sequence[int]
) -> Mapping[str, Mapping[int, Sequence[float]]]:
    articles, asked = joined(source)
    say(f"{source.name}: {len(articles):,} articles, {len(asked):,} questions with an answer span")
    async with open_encoders(settings, arguments.cache) as encoders:
        return {name: await _arm(settings, encoders, arm, (articles, asked), budgets) for name, arm in ARMS.items()}


def joined(source: BeirSet) -> tuple[list[Document], list[Asked]]:
    """Joins paragraphs of one title, and finds each question's answer in the paragraph that is relevant to it."""
    titles: dict[str, list[Document]] = {}
    for one in source.documents:
        titles.setdefault(one.title, []).append(one)
    articles: list[Document] = []
    places: dict[str, tuple[str, int, str]] = {}
    for title, paragraphs in titles.items():
        text = ""
        for one in paragraphs:
            places[one.document_id] = (title, len(text), one.text)
            text += one.text + _BREAK
        articles.append(Document(title, title, text.rstrip()))
    asked = [found for question in source.questions if (found := _asked(question, places)) is not None]
    return articles, asked


def _asked(question: Question, places: Mapping[str, tuple[str, int, str]]) -> Asked | None:
    answers = question.metadata.get("answers")
    gold = next((one for one in question.relevant if one in places), None)
    if gold is None or not isinstance(answers, tuple):
        return None
    title, start, text = places[gold]
    spans = tuple(
        (start + at, start + at + len(answer))
        for answer in map(str, answers)
        if answer and (at := text.find(answer)) >= 0
    )
    return Asked(question.text, title, spans) if spans else None


async def _arm(
    settings: Settings,
    encoders: Encoders,
    arm: Arm,
    given: tuple[Sequence[Document], Sequence[Asked]],
    budgets: Sequence[int],
) -> Mapping[int, Sequence[float]]:
    articles, asked = given
    started = time.perf_counter()
    chunker = chunker_of(ChunkingSettings(limit_tokens=arm.limit_tokens), encoders.dense)
    async with open_request_path(settings, encoders, encoders.cached) as path:
        index = await path.catalog.create(KEY, {}, "")
        documents = [_as_cut(one, arm) for one in articles]
        report = await Indexer(index, encoders.cached, chunker).run(map(ParsedDocument, documents))
        await index.build()
        found = {
            budget: [await _covers(path.without_cross_encoder, settings, arm, one, budget) for one in asked]
            for budget in budgets
        }
    say(f"  {arm}: {report.counts.chunks:,} chunks, {time.perf_counter() - started:.0f} s")
    return found


def _as_cut(document: Document, arm: Arm) -> Document:
    """Returns the article as an arm sees it; all offsets stay."""
    text = document.text if arm.structure else document.text.replace("\n", " ")
    return replace(document, text=text, title=document.title if arm.header else "")


async def _covers(pipeline: Pipeline, settings: Settings, arm: Arm, asked: Asked, budget: int) -> float:
    thresholds = resolve(settings, Overrides(top_k=_HITS, context_tokens=budget, cache=False))
    request = RetrieveRequest(
        "bench", KEY.tenant, KEY.collection, asked.text, None, replace(thresholds, expansion=arm.expansion)
    )
    found = await pipeline.retrieve(request, StageClock(), Deadline.after(_PATIENCE_S))
    cited = [one.passage for one in found.context.citations if one.passage.document_id == asked.document_id]
    return float(any(one.start <= start and end <= one.end for one in cited for start, end in asked.spans))


def _print(name: str, budgets: Sequence[int], found: Mapping[str, Mapping[int, Sequence[float]]]) -> None:
    rows: list[list[Cell]] = []
    for arm, values in found.items():
        cells: list[Cell] = [arm]
        for budget in budgets:
            own = np.array(values[budget], dtype=np.float64)
            served = np.array(found[_SERVED][budget], dtype=np.float64)
            less = mean_difference([own - served])
            cells.append(f"{own.mean():.3f} ({less.mean:+.3f} [{less.low:+.3f}, {less.high:+.3f}])")
        rows.append(cells)
    print_table(
        f"Recall of answer spans, {name}; beside it the difference from {_SERVED!r}", ["arm", *map(str, budgets)], rows
    )


if __name__ == "__main__":
    main()
