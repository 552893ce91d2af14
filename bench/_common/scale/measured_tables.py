"""The tables of what was measured."""

from __future__ import annotations

from bench._common.scale.costs import Costs, Size
from bench._common.scale.growth import growth_of
from bench._common.scale.numbers import digits, in_bytes, in_time, table


def unit_costs(costs: Costs) -> str:
    """Returns every unit cost with how it was measured."""
    encoding, reading, record = costs.encoding, costs.reading, costs.record
    driver, wire = costs.driver, costs.wire
    rows = [
        ["encoder, bare session, one thread", f"{digits(encoding.bare_one_tokens_per_s)} tokens/s"],
        [
            f"the same, {encoding.cores} threads",
            f"{digits(encoding.bare_all_tokens_per_s)} tokens/s, **{digits(encoding.core_tokens_per_s)} a core**",
        ],
        ["indexer, documents in, durable chunks out", f"{digits(encoding.indexer_tokens_per_s)} tokens/s"],
        ["opening the encoder", f"{digits(encoding.opening_s)} s"],
        [
            "a chunk",
            (
                f"{digits(encoding.tokens_a_chunk)} tokens, {digits(encoding.token_vectors_a_chunk)} token "
                f"vectors kept, {digits(record.terms)} distinct terms"
            ),
        ],
        [
            "a document",
            f"{digits(reading.characters_a_document)} characters, {digits(reading.chunks_a_document)} chunks",
        ],
        [
            "parsing it in the sandbox",
            f"{digits(reading.parse_row_ms)} ms as a row of a file, {digits(reading.parse_file_ms)} ms as a text file",
        ],
        ["chunking it, words counted", f"{digits(reading.chunk_ms)} ms"],
        [
            "record, a chunk",
            (
                f"**{in_bytes(record.file_bytes)}**: documents' texts {digits(record.text_bytes)}, "
                f"chunks {digits(record.chunk_bytes)}, metadata {digits(record.metadata_bytes)}, "
                f"vector {digits(record.vector_bytes)}, terms {digits(record.term_bytes)}, "
                f"token codes {digits(record.code_bytes)}; the rest is SQLite's"
            ),
        ],
        [
            "driver of a cluster, a document, embedded store",
            (
                f"{digits(driver.new_ms)} ms new, {digits(driver.unchanged_ms)} ms unchanged; "
                f"{in_bytes(driver.handed_bytes)} handed over, {in_bytes(driver.queue_bytes)} of the queue's file"
            ),
        ],
        [
            "client of a Qdrant server, a chunk, no server asked",
            (
                f"{digits(wire.write_ms)} ms to write ({digits(wire.bare_write_ms)} without token vectors), "
                f"{digits(wire.read_ms)} to read, "
                f"{in_bytes(wire.message_bytes)} a message's share"
            ),
        ],
        [
            "payload there",
            f"{in_bytes(wire.payload_bytes)} a chunk, {in_bytes(wire.document_bytes)} a document",
        ],
    ]
    return table(["what", "measured"], rows)


def sizes(costs: Costs) -> str:
    """Returns what each size took."""
    rows = [
        [
            _named(one, cut=cut),
            digits(one.build_s),
            digits(one.build_s * 1e3 / one.chunks),
            in_bytes(one.build_peak_bytes),
            in_bytes(one.generation_bytes / one.chunks),
            digits(one.graph_bytes / one.chunks),
            in_bytes(one.graph.own_bytes),
            in_bytes(one.graph.mapped_bytes),
            in_bytes(one.exact.own_bytes),
            digits(one.graph.open_ms),
        ]
        for one, cut in _all(costs)
    ]
    columns = ["chunks", "build s", "ms a chunk", "peak of the build", "generation a chunk", "links, B a chunk"]
    return table([*columns, "own memory", "mapped", "all in memory", "opening ms"], rows)


def searches(costs: Costs) -> str:
    """Returns what searches took at each size."""
    rows = [
        [
            _named(one, cut=cut),
            *(
                digits(value)
                for served in (one.graph, one.exact)
                for value in (served.dense_p50_ms, served.sparse_p50_ms, served.both_p50_ms)
            ),
            f"{one.distinct_terms:,}",
        ]
        for one, cut in _all(costs)
    ]
    columns = ["chunks", "graph: dense", "sparse", "both", "exact: dense", "sparse", "both", "distinct terms"]
    return table(columns, rows)


def fits(costs: Costs) -> str:
    """Returns the fits, as formulas, and what they say of a size beside what was measured there."""
    growth, last, whole = growth_of(costs), (costs.further or costs.sizes)[-1], costs.sizes[-1]
    build, dense, sparse, exact = growth.build, growth.dense, growth.sparse, growth.exact
    served, n = last.graph, last.chunks
    rows = [
        [
            "build",
            f"{build.factor:.3g} s * n^{build.exponent:.2f}",
            in_time(build.at(n)),
            in_time(last.build_s),
        ],
        [
            "dense search in the graph",
            f"{dense.base * 1e3:.3g} + {dense.slope * 1e3:.3g} * ln(n) ms",
            in_time(dense.at(n)),
            in_time(served.dense_p50_ms / 1e3),
        ],
        [
            "sparse search, a power",
            f"{sparse.factor * 1e3:.3g} ms * n^{sparse.exponent:.2f}",
            in_time(sparse.at(n)),
            in_time(served.sparse_p50_ms / 1e3),
        ],
        [
            "sparse search, a line",
            f"{growth.sparse_line.base * 1e3:.3g} ms + {growth.sparse_line.slope * 1e9:.3g} ms a million",
            in_time(growth.sparse_line.at(n)),
            in_time(served.sparse_p50_ms / 1e3),
        ],
        [
            "dense search, exact",
            f"{exact.slope * 1e9:.3g} ms a million",
            in_time(exact.at(n)),
            in_time(last.exact.dense_p50_ms / 1e3),
        ],
        [
            "opening a generation",
            f"{growth.opening.slope * 1e6:.3g} ms a thousand",
            in_time(growth.opening.at(n)),
            in_time(served.open_ms / 1e3),
        ],
        [
            "own memory of what serves",
            f"{in_bytes(growth.own.slope)} a chunk",
            in_bytes(growth.own.at(n)),
            in_bytes(served.own_bytes),
        ],
        [
            f"mapped after the questions, at {whole.chunks:,}",
            f"{in_bytes(growth.mapped.slope)} a chunk",
            in_bytes(growth.mapped.at(whole.chunks)),
            in_bytes(whole.graph.mapped_bytes),
        ],
        [
            f"everything in memory, no generation, at {whole.chunks:,}",
            f"{in_bytes(growth.exact_own.slope)} a chunk",
            in_bytes(growth.exact_own.at(whole.chunks)),
            in_bytes(whole.exact.own_bytes),
        ],
        [
            f"distinct terms, at {whole.chunks:,}",
            f"{growth.terms.factor:.3g} * n^{growth.terms.exponent:.2f}",
            f"{growth.terms.at(whole.chunks):,.0f}",
            f"{whole.distinct_terms:,}",
        ],
    ]
    return table(["what", "fit", f"at {n:,}, by the fit", "measured there"], rows)


def _all(costs: Costs) -> list[tuple[Size, bool]]:
    return [*((one, False) for one in costs.sizes), *((one, True) for one in costs.further)]


def _named(one: Size, *, cut: bool) -> str:
    name = f"{one.chunks:,}{', cut' if cut else ''}"
    return name if one.graph_bytes else f"{name} (no graph yet)"


def held(costs: Costs) -> str:
    """Returns what one process of a run keeps for all documents."""
    remembered = costs.remembered
    documents = [
        ("`SeenIds`, of a job's run", remembered.seen_ids),
        ("fingerprints, of a run over a cluster", remembered.fingerprints),
        ("`SeenSources`, of `headrace index`", remembered.seen_sources),
        ("signatures of near duplicates, without the bound of 200,000", remembered.signatures),
        ("term counts, a chunk, while a server's generation is made", remembered.term_counts),
    ]
    rows = [
        [name, f"{digits(each)} B", *(in_bytes(each * count) for count in (1e6, 1e8, 1e9))] for name, each in documents
    ]
    return table(["what one process holds", "each", "10^6", "10^8", "10^9"], rows)
