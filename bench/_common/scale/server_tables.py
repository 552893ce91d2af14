"""The tables of what a Qdrant cluster holds and what a search asks of it."""

from __future__ import annotations

from bench._common.scale import formulas
from bench._common.scale.assumed import (
    COPIES,
    HEADROOM,
    LINKS,
    NODE_DISK,
    NODE_MEMORY,
    OVERSAMPLED,
    PAYLOAD_FACTOR,
    PAYLOAD_INDEX_BYTES,
    RERANKED,
    SHARDS,
    SIZES,
    SPARSE_ENTRY_BYTES,
    USABLE,
)
from bench._common.scale.costs import Costs
from bench._common.scale.formulas import PointBytes
from bench._common.scale.growth import growth_of
from bench._common.scale.numbers import digits, in_bytes, in_time, size, table


def point_of(costs: Costs, token_number_bytes: float = formulas.FLOAT_BYTES, *, quantized: bool = True) -> PointBytes:
    """Returns a chunk's bytes on a server; `token_number_bytes` of one number of a token vector."""
    encoding, wire = costs.encoding, costs.wire
    return PointBytes(
        originals=encoding.dim * formulas.FLOAT_BYTES,
        quantized=formulas.int8_bytes(encoding.dim) if quantized else 0.0,
        links=formulas.link_bytes(LINKS),
        ids=formulas.id_bytes(),
        sparse=costs.record.terms * SPARSE_ENTRY_BYTES,
        payload_indexes=PAYLOAD_INDEX_BYTES,
        tokens=formulas.token_bytes(encoding.token_vectors_a_chunk, encoding.token_dim, token_number_bytes),
        payload=wire.payload_bytes * PAYLOAD_FACTOR,
        document=wire.document_bytes / costs.reading.chunks_a_document * PAYLOAD_FACTOR,
    )


def memory(costs: Costs) -> str:
    """Returns what must be in memory, part by part, in one copy."""
    point = point_of(costs)
    parts = [
        ("dense vectors, float32", point.originals),
        ("dense vectors, int8 (originals on disk)", point.quantized),
        (f"links of the graph, m = {LINKS}", point.links),
        ("ids and versions", point.ids),
        ("sparse index", point.sparse),
        ("payload indexes (assumed)", point.payload_indexes),
        ("**all, float32**", point_of(costs, quantized=False).memory(originals_on_disk=False)),
        ("**all, int8**", point.memory(originals_on_disk=True)),
        ("Qdrant's rule for float32, dense alone", formulas.planned_bytes(1, costs.encoding.dim)),
    ]
    rows = [[name, f"{digits(each)} B", *(in_bytes(each * chunks) for chunks in SIZES)] for name, each in parts]
    return table(["in memory, one copy", "a chunk", *map(size, SIZES)], rows)


def disk(costs: Costs) -> str:
    """Returns what is on disks, part by part, in one copy."""
    point, encoding = point_of(costs), costs.encoding
    parts = [
        ("token vectors, float32 (as it is)", point.tokens),
        ("dense vectors", point.originals),
        (
            "int8 copy, links, ids, indexes, sparse twice",
            point.disk - point.originals - point.tokens - point.payload - point.document,
        ),
        ("chunks' payload, term counts in it", point.payload),
        ("documents' own points", point.document),
        ("**all**", point.disk),
        ("all, without token vectors", point.disk - point.tokens),
        ("all, token vectors of 16 bits (not built)", point_of(costs, 2).disk),
        ("all, token vectors of 8 bits (not built)", point_of(costs, 1).disk),
        (
            "all, token codes as they are in the record (not built)",
            point_of(costs, encoding.token_code_bytes / encoding.token_dim).disk,
        ),
        (
            "for comparison: embedded, record and generation",
            costs.record.file_bytes + growth_of(costs).generation.slope,
        ),
    ]
    rows = [[name, f"{digits(each)} B", *(in_bytes(each * chunks) for chunks in SIZES)] for name, each in parts]
    return table(["on disk, one copy", "a chunk", *map(size, SIZES)], rows)


def machines(costs: Costs) -> str:
    """Returns how many nodes it takes, by memory and by disk."""
    rows = []
    for chunks in SIZES:
        for name, quantized, token_bytes in (
            ("float32", False, 4.0),
            ("int8", True, 4.0),
            ("int8, no token vectors", True, 0.0),
        ):
            point = point_of(costs, token_bytes, quantized=quantized)
            held = point.memory(originals_on_disk=quantized) * chunks * HEADROOM
            stored = point.disk * chunks
            by_memory = formulas.nodes(held, NODE_MEMORY, COPIES, USABLE)
            by_disk = formulas.nodes(stored, NODE_DISK, COPIES, USABLE)
            rows.append(
                [
                    size(chunks),
                    name,
                    in_bytes(held * COPIES),
                    in_bytes(stored * COPIES),
                    f"{by_memory}",
                    f"{by_disk}",
                    f"**{max(by_memory, by_disk)}**",
                ]
            )
    columns = [
        "chunks",
        "layout",
        "memory, two copies",
        "disk, two copies",
        "nodes by memory",
        "nodes by disk",
        "nodes",
    ]
    return table(columns, rows)


def queries(costs: Costs) -> str:
    """Returns what a search costs over shards; far beyond what was measured."""
    growth, point = growth_of(costs), point_of(costs)
    rows = []
    for chunks, shards in SHARDS.items():
        dense = formulas.scattered(growth.dense, chunks, shards)
        least, most = (formulas.scattered(fit, chunks, shards) for fit in (growth.sparse, growth.sparse_line))
        core_s = [dense.core_s + sparse.core_s for sparse in (least, most)]
        rows.append(
            [
                size(chunks),
                f"{shards}",
                in_time(dense.slowest_s),
                f"{in_time(least.slowest_s)} to {in_time(most.slowest_s)}",
                " to ".join(map(in_time, core_s)),
                " to ".join(digits(1 / one) for one in reversed(core_s)),
                in_bytes(shards * OVERSAMPLED * point.originals),
                in_bytes(RERANKED * point.tokens),
            ]
        )
    columns = [
        "chunks",
        "shards",
        "dense, a shard",
        "sparse, a shard",
        "core time of a search",
        "searches a second and core",
    ]
    return table([*columns, "originals read to score again", "token vectors read"], rows)


def statistics(costs: Costs) -> str:
    """Returns how large the term statistics of a collection become: one point of its server, one file here."""
    terms = growth_of(costs).terms
    rows = [
        [
            size(chunks),
            f"{terms.at(chunks):,.0f}",
            in_bytes(8 * terms.at(chunks)),
            in_bytes(8 * terms.at(chunks) * 4 / 3),
        ]
        for chunks in SIZES
    ]
    return table(["chunks", "distinct terms", "in memory and in a file", "in the payload of one point"], rows)
