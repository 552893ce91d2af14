"""The parts of `docs/scale.md` that are figures, by name, and how they get between its marks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench._common.scale import formulas, indexing_tables, measured_tables, server_tables
from bench._common.scale.assumed import ROUND_TRIP_S, SHARDS
from bench._common.scale.costs import Costs
from bench._common.scale.growth import growth_of
from bench._common.scale.indexing_tables import timeouts, work_of
from bench._common.scale.numbers import digits, in_bytes, in_time
from bench._common.scale.server_tables import point_of

_MARKED = re.compile(r"(<!-- figures: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def sections(costs: Costs) -> Mapping[str, str]:
    """Returns every part that is computed."""
    return {
        "short": short(costs),
        "costs": measured_tables.unit_costs(costs),
        "sizes": measured_tables.sizes(costs),
        "searches": measured_tables.searches(costs),
        "fits": measured_tables.fits(costs),
        "embedding": indexing_tables.embedding(costs),
        "serial": indexing_tables.serial(costs),
        "runs": indexing_tables.runs(costs),
        "memory": server_tables.memory(costs),
        "disk": server_tables.disk(costs),
        "machines": server_tables.machines(costs),
        "embedded": indexing_tables.embedded(costs),
        "queries": server_tables.queries(costs),
        "migration": indexing_tables.migration(costs),
        "held": measured_tables.held(costs),
        "statistics": server_tables.statistics(costs),
        "money": indexing_tables.money(costs),
    }


def written_into(text: str, parts: Mapping[str, str]) -> str:
    """Returns the paper with the parts between its marks.

    Raises:
        SystemExit: a mark names no part, or a part has no mark.
    """
    names = [found["name"] for found in _MARKED.finditer(text)]
    if sorted(names) != sorted(parts):
        missing = ", ".join(sorted(set(names) ^ set(parts))) or "one of them twice"
        raise SystemExit(f"the paper's marks and the tool's parts differ: {missing}")
    return _MARKED.sub(lambda found: f"{found[1]}{parts[found['name']]}\n{found[3]}", text)


def short(costs: Costs) -> str:
    """Returns what a reader in a hurry should know."""
    lines = [*_of_indexing(costs), *_of_the_server(costs), *_of_the_embedded(costs), *_of_searches(costs)]
    return "\n".join(f"- {one}" for one in lines)


def _of_indexing(costs: Costs) -> list[str]:
    work = work_of(costs)
    encode = costs.encoding.tokens_a_chunk / costs.encoding.core_tokens_per_s
    fed, bare = (formulas.cores_fed(work.parallel, each) for each in (work.rows, work.bare))
    return [
        (
            f"**Embedding** is linear: {encode * 1e8 / 3600:,.0f} core-hours for 10^8 chunks, ten times that for 10^9. "
            f"On 256 cores that is {in_time(encode * 1e8 / 256)} and {in_time(encode * 1e9 / 256)}."
        ),
        (
            f"**One process writes.** Into a Qdrant server its own computing alone ({in_time(work.client)} a chunk) is "
            f"{in_time(work.client * 1e8)} for 10^8 chunks and {in_time(work.client * 1e9)} for 10^9; with calls of "
            f"{ROUND_TRIP_S * 1e3:g} ms (assumed) {in_time(work.rows * 1e8)} and {in_time(work.rows * 1e9)}. More than "
            f"{fed:,.0f} encoding cores do not make such a run faster; without token vectors, more than {bare:,.0f}. "
            f"Into an embedded record it is {in_time(work.embedded * 1e8)} for 10^8."
        ),
    ]


def _of_the_server(costs: Costs) -> list[str]:
    point, encoding = point_of(costs), costs.encoding
    with_codes = point_of(costs, encoding.token_code_bytes / encoding.token_dim).disk
    _, chunks = timeouts(costs)
    return [
        (
            f"**Token vectors** are {point.tokens / point.disk:.0%} of a server's disks: "
            f"{in_bytes(point.tokens)} a chunk, "
            f"decoded to float32, where the record keeps {in_bytes(costs.record.code_bytes)} of codes. 10^9 "
            "chunks in two "
            f"copies are {in_bytes(2e9 * point.disk)}; with codes they would be {in_bytes(2e9 * with_codes)}."
        ),
        (
            f"**Memory**, int8 held in it: {digits(point.memory(originals_on_disk=True))} B a chunk and copy, "
            "of which the "
            f"vector is {digits(point.quantized)}, the sparse index {digits(point.sparse)}, links "
            f"{digits(point.links)}."
        ),
        (
            f"**A new generation on a server** copies everything through one process: some {chunks / 1e6:.1f} million "
            "chunks fit into "
            "the hour that it may take, which no setting raises. Beyond that, term statistics stay as they were."
        ),
    ]


def _of_the_embedded(costs: Costs) -> list[str]:
    growth, (chunks, _) = growth_of(costs), timeouts(costs)
    return [
        (
            f"**The embedded default**: 10^6 chunks build in {in_time(growth.build.at(1e6))}, and stop the server for "
            f"{in_time(growth.opening.at(1e6))} when the new generation opens; 10^7 in "
            f"{in_time(growth.build.at(1e7))} and "
            f"{in_time(growth.opening.at(1e7))}. A build may take an hour: "
            f"{chunks / 1e6:.1f} million chunks."
        )
    ]


def _of_searches(costs: Costs) -> list[str]:
    growth, shard = growth_of(costs), 1e9 / SHARDS[1e9]
    low, high = in_time(growth.sparse.at(shard)), in_time(growth.sparse_line.at(shard))
    return [
        (
            f"**Searches** are the weakest figures: a shard of {shard / 1e6:.0f} million chunks takes "
            f"{low} to {high} of a core for words and {in_time(growth.dense.at(shard))} for vectors, read "
            f"{shard / growth.largest:,.0f} times beyond what was measured, all of it in memory."
        )
    ]
