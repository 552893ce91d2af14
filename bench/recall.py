"""Compares the embedded approximate index with exact search: recall@10 and latency, with and without filters.

Real passages, cut short so that many of them embed in minutes, are written to two collections: one served by Qdrant
Edge, one by brute force. Real questions are asked of both, one after the other in alternating order, unfiltered and
under filters that keep a half, a twentieth and a two-hundredth of the documents at random. With `--field`, also under
each of the commonest values of a real field, whose documents lie close together: the hard case for a graph.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench._common import options
from bench._common.engines import Encoders, open_encoders
from bench._common.loops import run
from bench._common.passages import cut_to_tokens, read_passages, read_questions
from bench._common.pipelines import KEY, open_catalog
from bench._common.plots import Titles, plot_bars
from bench._common.pools import encode_all
from bench._common.results import plain, write_results
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import Cell, print_table, say
from encoders.terms import count_terms
from encoders.types import TextKind
from indexers.chunking import chunk_id
from indexers.filters import Filter, MatchAny, Range
from indexers.index import Index
from indexers.types import Candidates, Chunk, Document, EncodedChunk, EncodedDocument, FieldType, SearchQuery
from retrieval.settings import Settings

_TOP = 10
_BUCKETS = 1000
_BUCKET = "bench_bucket"
_RANDOM_SHARES = (0.5, 0.05, 0.005)
_COMMON_VALUES = 3
_WRITTEN_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Arm:
    """One condition under which both indexes were asked."""

    name: str
    kept: float  # share of the passages
    recall: float  # mean share of the exact ten that were found
    worst: float  # the least of any question
    approximate: Quantiles
    exact: Quantiles


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    vectors: int
    questions: int
    build_s: float
    arms: tuple[Arm, ...]


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("--passages", type=Path, required=True, metavar="FILE", help="JSON lines of documents; .gz too")
    made.add_argument("--queries", type=Path, required=True, metavar="FILE", help="JSON lines with `text`, or lines")
    made.add_argument("--vectors", type=int, default=50_000, metavar="N")
    made.add_argument("--tokens", type=int, default=48, help="tokens of a passage that are embedded")
    made.add_argument("--questions", type=int, default=500, metavar="N")
    made.add_argument("--field", default="", metavar="NAME", help="a metadata field to filter by as well")
    arguments = made.parse_args()
    settings = options.settings(arguments, {})
    report = run(_measure(arguments, settings))
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        series = {
            "recall@10": [arm.recall for arm in report.arms],
            "worst question": [arm.worst for arm in report.arms],
        }
        titles = Titles(f"Qdrant Edge against exact search, {report.vectors:,} vectors", "filter", "recall@10")
        plot_bars(outputs.plot_file, titles, [arm.name for arm in report.arms], series)


async def _measure(arguments: argparse.Namespace, settings: Settings) -> Report:
    async with open_encoders(settings, arguments.cache) as encoders:
        documents = await _encoded(arguments, encoders)
        questions = read_questions(arguments.queries, arguments.questions)
        queries = await encode_all(encoders.cached, questions, TextKind.QUERY)
        fields = {_BUCKET: FieldType.INTEGER, **({arguments.field: FieldType.KEYWORD} if arguments.field else {})}
        async with (
            _filled(settings, "exact", encoders, documents, fields) as (exact, _),
            _filled(settings, "edge", encoders, documents, fields) as (edge, build_s),
        ):
            arms = [
                await _compare(name, condition, (edge, exact), queries)
                for name, condition in _filters(documents, arguments.field).items()
            ]
    return Report(len(documents), len(questions), build_s, tuple(arms))


async def _encoded(arguments: argparse.Namespace, encoders: Encoders) -> list[EncodedDocument]:
    counter = encoders.dense.tokenization
    passages = read_passages(arguments.passages, arguments.vectors)
    texts = [cut_to_tokens(passage.text, counter, arguments.tokens) for passage in passages]
    vectors = await encode_all(encoders.cached, texts, TextKind.PASSAGE)
    say(f"{len(texts):,} passages embedded, {encoders.cached.computed:,} of them now")
    return [_document(passage, text, vector) for passage, text, vector in zip(passages, texts, vectors, strict=True)]


def _document(passage: Document, text: str, vector: NDArray[np.float32]) -> EncodedDocument:
    bucket = int.from_bytes(blake2b(passage.document_id.encode(), digest_size=8).digest(), "little") % _BUCKETS
    document = replace(passage, text=text, metadata={**passage.metadata, _BUCKET: bucket})
    chunk = Chunk(chunk_id(passage.document_id, text, 0), 0, 0, len(text), (), 0, text, len(text.split()), "", 0)
    return EncodedDocument(document, str(bucket), (EncodedChunk(chunk, vector, count_terms(text)),))


@asynccontextmanager
async def _filled(
    settings: Settings,
    kind: str,
    encoders: Encoders,
    documents: Sequence[EncodedDocument],
    fields: dict[str, FieldType],
) -> AsyncIterator[tuple[Index, float]]:
    """Gives an index of that kind with the documents in one generation, and the seconds that building it took."""
    chosen = settings.model_copy(update={"index": settings.index.model_copy(update={"kind": kind})})
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        catalog = open_catalog(chosen, encoders.cached, Path(folder))
        try:
            index = await catalog.create(KEY, fields, "")
            for start in range(0, len(documents), _WRITTEN_AT_ONCE):
                await index.upsert(documents[start : start + _WRITTEN_AT_ONCE])
            started = time.perf_counter()
            await index.build()
            build_s = time.perf_counter() - started
            say(f"{kind}: built in {build_s:.1f} s")
            yield index, build_s
        finally:
            await catalog.close()


def _filters(documents: Sequence[EncodedDocument], field: str) -> Mapping[str, tuple[Filter | None, float]]:
    """Returns the conditions by name, each with the share of documents that pass."""
    count = max(1, len(documents))
    buckets = np.array([document.document.metadata[_BUCKET] for document in documents], dtype=np.int64)
    found: dict[str, tuple[Filter | None, float]] = {"unfiltered": (None, 1.0)}
    for share in _RANDOM_SHARES:
        below = int(share * _BUCKETS)
        kept = Filter(must=(Range(_BUCKET, lt=below),))
        found[f"keeps {share:.1%}"] = (kept, float((buckets < below).mean()))
    values = Counter(value for document in documents if isinstance(value := document.document.metadata.get(field), str))
    for value, times in values.most_common(_COMMON_VALUES):
        found[f"{field} = {value}"] = (Filter(must=(MatchAny(field, (value,)),)), times / count)
    return found


async def _compare(
    name: str, condition: tuple[Filter | None, float], indexes: tuple[Index, Index], queries: NDArray[np.float32]
) -> Arm:
    asked, kept = condition
    times: tuple[list[int], list[int]] = ([], [])
    recalls = []
    for number, vector in enumerate(queries):
        found: dict[int, Candidates] = {}
        # Each is first as often as second, so what one leaves in the processor's caches favours neither.
        for which in (0, 1) if number % 2 else (1, 0):
            started = time.perf_counter_ns()
            found[which] = await indexes[which].search(SearchQuery(vector, None, _TOP), asked)
            times[which].append(time.perf_counter_ns() - started)
        recalls.append(recall_of(found[0].dense_scores, found[1].dense_scores))
    return Arm(name, kept, float(np.mean(recalls)), min(recalls), quantiles(times[0]), quantiles(times[1]))


def recall_of(found: NDArray[np.float32], exact: NDArray[np.float32]) -> float:
    """Returns the share of the exact ten that was found, by scores: copies of one passage stand for each other."""
    if not len(exact):
        return 1.0
    bar = exact.min() - 1e-6
    return min(int((found >= bar).sum()), len(exact)) / len(exact)


def _print(report: Report) -> None:
    rows = [_row(arm) for arm in report.arms]
    columns = ["filter", "kept", "recall@10", "worst", "Edge p50 ms", "p95", "exact p50 ms", "p95"]
    print_table(f"{report.vectors:,} vectors, {report.questions:,} questions", columns, rows)


def _row(arm: Arm) -> list[Cell]:
    times = [one for each in (arm.approximate, arm.exact) for one in (each.p50_ms, each.p95_ms)]
    return [arm.name, arm.kept, arm.recall, arm.worst, *times]


if __name__ == "__main__":
    main()
