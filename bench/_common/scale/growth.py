"""How costs grow with the size of a collection, fitted to the sizes that were measured, and how far that carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench._common.scale.costs import Costs, Size
from bench._common.scale.formulas import Line, Logarithmic, Power, line, logarithmic, power


@dataclass(frozen=True, slots=True)
class Growth:
    """The fits; times in seconds, bytes in bytes."""

    build: Power
    dense: Logarithmic  # in the graph
    sparse: Power
    sparse_line: Line
    exact: Line  # the dense branch, compared with all
    opening: Line
    own: Line  # memory of a process that serves
    mapped: Line
    exact_own: Line  # memory of a process that holds everything
    generation: Line
    terms: Power
    largest: int


def growth_of(costs: Costs) -> Growth:
    """Fits sizes that have a graph; the ones below are searched and built in another way.

    Times, and what memory a process has of its own, are fitted to the larger sizes where there are some. Files are not:
    those have no token codes.
    """
    whole = [one for one in costs.sizes if one.graph_bytes]
    if len(whole) < 2:
        raise SystemExit("growth needs at least two sizes with a graph; measure above 6,700 chunks")
    further = [one for one in costs.further if one.graph_bytes]
    wide = further if len(further) > 1 else whole

    def of(what: Callable[[Size], float]) -> tuple[list[float], list[float]]:
        return [float(one.chunks) for one in wide], [what(one) for one in wide]

    def files(what: Callable[[Size], float]) -> tuple[list[float], list[float]]:
        return [float(one.chunks) for one in whole], [what(one) for one in whole]

    return Growth(
        build=power(*of(lambda one: one.build_s)),
        dense=logarithmic(*of(lambda one: one.graph.dense_p50_ms / 1e3)),
        sparse=power(*of(lambda one: one.graph.sparse_p50_ms / 1e3)),
        sparse_line=line(*of(lambda one: one.graph.sparse_p50_ms / 1e3)),
        exact=line(*of(lambda one: one.exact.dense_p50_ms / 1e3)),
        opening=line(*of(lambda one: one.graph.open_ms / 1e3)),
        own=line(*of(lambda one: one.graph.own_bytes)),
        mapped=line(*files(lambda one: one.graph.mapped_bytes)),
        exact_own=line(*files(lambda one: one.exact.own_bytes)),
        generation=line(*files(lambda one: one.generation_bytes)),
        terms=power(*files(lambda one: one.distinct_terms)),
        largest=wide[-1].chunks,
    )
