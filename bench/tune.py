"""Finds the weight of the dense branch and the normalisation of BM25 for the convex fusion.

Every set is searched once; then each normalisation and each weight from 0 to 1 is tried on the candidates of the train
split. A weight is chosen for each set, for the mean of all, and for each set from the others alone (leave one out); the
price of a common weight is measured on the test split.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench._common import options
from bench._common.beir import BeirSet, Split, read_set, split_of
from bench._common.engines import open_encoders
from bench._common.fusions import (
    DENSE_WEIGHTS,
    NORMALISATIONS,
    Normalise,
    Scores,
    branch_scores,
    convex_scores,
    pool_ndcg,
    rrf_scores,
)
from bench._common.plots import Line, Titles, plot_lines
from bench._common.pools import Pool, gather_pools, prepare_set
from bench._common.results import Json, write_results
from bench._common.tables import Cell, print_table, say
from retrieval.settings import Settings

Pools = Mapping[str, Sequence[Pool]]


@dataclass(frozen=True, slots=True)
class Curves:
    """The mean nDCG@10 float64 [sets, weights] of one normalisation on each split."""

    train: Scores
    test: Scores

    @property
    def best(self) -> int:
        """The place of the weight with the best mean over the sets on train."""
        return int(self.train.mean(axis=0).argmax())

    def without(self, left_out: int) -> int:
        """The place of the weight that the other sets choose."""
        others = np.delete(self.train, left_out, axis=0)
        return int(others.mean(axis=0).argmax()) if len(others) else self.best


@dataclass(frozen=True, slots=True)
class Baselines:
    """The nDCG@10 float64 [sets] of what fusion has to beat, on the test split."""

    dense: Scores
    sparse: Scores
    rrf: Scores


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    options.add_set_options(made, Split.ALL)
    made.add_argument("--normalise", default=",".join(NORMALISATIONS), help="normalisations of BM25 to try")
    made.add_argument("--candidates", type=int, default=100, metavar="N", help="candidates of each branch")
    arguments = made.parse_args()
    settings = options.settings(arguments, {})
    pools = asyncio.run(_gather(arguments, settings))
    curves = {name: _curves(pools, NORMALISATIONS[name]) for name in arguments.normalise.split(",")}
    baselines = _baselines(pools)
    _print(list(pools), curves, baselines)
    _write(arguments, settings, list(pools), curves, baselines)


async def _gather(arguments: argparse.Namespace, settings: Settings) -> Pools:
    pools: dict[str, Sequence[Pool]] = {}
    async with open_encoders(settings, arguments.cache) as encoders:
        for folder in arguments.sets:
            started = time.perf_counter()
            source: BeirSet = read_set(folder, arguments.qrels).part(arguments.split, arguments.limit)
            searchable = await prepare_set(source, encoders.cached, encoders.chunker)
            pools[source.name] = await gather_pools(searchable, source.questions, encoders.cached, arguments.candidates)
            say(
                f"{source.name}: {len(source.documents):,} documents, {len(searchable.documents):,} chunks, "
                f"{len(source.questions):,} questions in {time.perf_counter() - started:.1f} s"
            )
    return pools


def _curves(pools: Pools, normalise: Normalise) -> Curves:
    rows: dict[Split, list[Scores]] = {Split.TRAIN: [], Split.TEST: []}
    for of_set in pools.values():
        judged = [pool_ndcg(pool, convex_scores(pool, normalise, DENSE_WEIGHTS)) for pool in of_set]
        for split, kept in rows.items():
            kept.append(_mean(of_set, judged, split))
    return Curves(np.stack(rows[Split.TRAIN]), np.stack(rows[Split.TEST]))


def _mean(pools: Sequence[Pool], judged: Sequence[Scores], split: Split) -> Scores:
    kept = [ndcg for pool, ndcg in zip(pools, judged, strict=True) if split_of(pool.query_id) is split]
    # A set of so few questions that a split has none cannot say anything about it.
    mean: Scores = np.mean(kept or judged, axis=0)
    return mean


def _baselines(pools: Pools) -> Baselines:
    def on_test(scores: str) -> Scores:
        of = {"rrf": rrf_scores}.get(scores, lambda pool: branch_scores(pool, scores))
        return np.array(
            [_mean(of_set, [pool_ndcg(pool, of(pool)) for pool in of_set], Split.TEST)[0] for of_set in pools.values()]
        )

    return Baselines(on_test("dense"), on_test("sparse"), on_test("rrf"))


def _print(names: list[str], curves: Mapping[str, Curves], baselines: Baselines) -> None:
    columns = ["arm", "weight", *names, "mean", "worst against the better branch"]
    better = np.maximum(baselines.dense, baselines.sparse)
    rows: list[list[Cell]] = [
        [name, None, *map(float, values), float(values.mean()), float((values - better).min())]
        for name, values in (("dense", baselines.dense), ("sparse", baselines.sparse), ("rrf", baselines.rrf))
    ]
    for name, curve in curves.items():
        values = curve.test[:, curve.best]
        worst = float((values - better).min())
        rows.append([name, float(DENSE_WEIGHTS[curve.best]), *map(float, values), float(values.mean()), worst])
    print_table("nDCG@10 on the test split, each normalisation with its best common weight of train", columns, rows)
    chosen = next(iter(curves))
    _print_weights(chosen, names, curves[chosen])


def _print_weights(normalisation: str, names: list[str], curve: Curves) -> None:
    rows: list[list[Cell]] = []
    for place, name in enumerate(names):
        own, others = int(curve.train[place].argmax()), curve.without(place)
        test = curve.test[place]
        weights = [float(DENSE_WEIGHTS[choice]) for choice in (own, others)]
        figures = [float(test[choice]) for choice in (own, curve.best, others)]
        rows.append([name, *weights, *figures, figures[1] - figures[0]])
    columns = ["set", "own weight", "others' weight", "own", "common", "left out", "common - own"]
    print_table(f"{normalisation}: weights of train, nDCG@10 of test", columns, rows)


def _write(
    arguments: argparse.Namespace,
    settings: Settings,
    names: list[str],
    curves: Mapping[str, Curves],
    baselines: Baselines,
) -> None:
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, _figures(names, curves, baselines), settings)
    if outputs.plot_file:
        weights = [float(weight) for weight in DENSE_WEIGHTS]
        lines = [Line(name, weights, list(curve.test.mean(axis=0))) for name, curve in curves.items()]
        lines.append(Line("reciprocal ranks", weights, [float(baselines.rrf.mean())] * len(weights), dashed=True))
        titles = Titles("Convex fusion: mean nDCG@10 of the test split", "weight of the dense branch", "nDCG@10")
        plot_lines(outputs.plot_file, titles, lines)


def _figures(names: list[str], curves: Mapping[str, Curves], baselines: Baselines) -> Mapping[str, Json]:
    def by_set(values: Scores) -> Json:
        return {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}

    def curve_by_set(values: Scores) -> Json:
        return {name: [round(float(one), 4) for one in row] for name, row in zip(names, values, strict=True)}

    found: dict[str, Json] = {
        name: {
            "best_common_weight": float(DENSE_WEIGHTS[curve.best]),
            "best_own_weight": by_set(DENSE_WEIGHTS[curve.train.argmax(axis=1)]),
            "left_out_weight": by_set(DENSE_WEIGHTS[[curve.without(place) for place in range(len(names))]]),
            "train": curve_by_set(curve.train),
            "test": curve_by_set(curve.test),
        }
        for name, curve in curves.items()
    }
    return {
        "weights": [float(weight) for weight in DENSE_WEIGHTS],
        "baselines_test": {
            "dense": by_set(baselines.dense),
            "sparse": by_set(baselines.sparse),
            "rrf": by_set(baselines.rrf),
        },
        "normalisations": found,
    }


if __name__ == "__main__":
    main()
