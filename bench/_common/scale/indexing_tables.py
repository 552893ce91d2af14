"""The tables of what indexing takes: embedding, the driver, migrations, the embedded default."""

from __future__ import annotations

from dataclasses import dataclass

from bench._common.scale import formulas
from bench._common.scale.assumed import CORES, PRICE_CORE_HOUR, ROUND_TRIP_S, ROUND_TRIPS_S, SIZES
from bench._common.scale.costs import Costs
from bench._common.scale.growth import growth_of
from bench._common.scale.numbers import digits, in_bytes, in_time, size, table

BUILD_TIMEOUT_S = 3_600.0  # `index.build_timeout_s` by default
_WAVE_ITEMS = 1_000
_EMBEDDED = (1e5, 1e6, 1e7, 1e8)


@dataclass(frozen=True, slots=True)
class Work:
    """A chunk's time in each part of a run, in seconds."""

    parallel: float  # of a core: parsing, chunking, encoding
    embedded: float  # of the driver that writes a record here
    client: float  # of the driver that writes to a server, its own computing alone
    rows: float  # of the same with the server's calls, documents that are rows of large files
    files: float  # documents that are files
    bare: float  # rows, into a collection without token vectors


def work_of(costs: Costs, round_trip_s: float = ROUND_TRIP_S) -> Work:
    """Computes them. A batch of the driver is 64 results; an item that is a file adds one of its own."""
    encoding, reading = costs.encoding, costs.reading
    chunks, tokens = reading.chunks_a_document, encoding.token_vectors_a_chunk
    encode = encoding.tokens_a_chunk / encoding.core_tokens_per_s
    read = (reading.parse_row_ms + reading.chunk_ms) / 1e3 / chunks
    client = costs.wire.write_ms / 1e3

    def server(documents: int, tokens: float = tokens, client: float = client) -> float:
        return formulas.server_write_s(documents, chunks, tokens, client, round_trip_s) / chunks

    bare = server(64, tokens=4.0, client=costs.wire.bare_write_ms / 1e3)  # 256 points a piece
    return Work(encode + read, costs.driver.new_ms / 1e3 / chunks, client, server(64), server(32), bare)


def embedding(costs: Costs) -> str:
    """Returns the hours of re-embedding."""
    encoding = costs.encoding
    rows = []
    for chunks in SIZES:
        each = [
            formulas.embedding_s(chunks, encoding.tokens_a_chunk, encoding.core_tokens_per_s, cores) for cores in CORES
        ]
        one = formulas.embedding_s(chunks, encoding.tokens_a_chunk, encoding.core_tokens_per_s, 1)
        rows.append([size(chunks), f"{one / 3600:,.0f}", *map(in_time, each)])
    return table(["chunks", "core-hours", *(f"{cores:,} cores" for cores in CORES)], rows)


def serial(costs: Costs) -> str:
    """Returns what no second machine helps with, and how many cores it can feed."""
    work, chunks = work_of(costs), costs.reading.chunks_a_document
    wave = costs.encoding.opening_s / _WAVE_ITEMS / chunks
    parts = [
        ("driver, embedded record", work.embedded),
        ("driver, all documents unchanged", costs.driver.unchanged_ms / 1e3 / chunks),
        ("driver, Qdrant, only what the client computes", work.client),
    ]
    for trip in ROUND_TRIPS_S:
        each = work_of(costs, trip)
        parts.append((f"the same with calls of {trip * 1e3:g} ms, rows of large files", each.rows))
        parts.append((f"the same with calls of {trip * 1e3:g} ms, a file a document", each.files))
        parts.append((f"the same with calls of {trip * 1e3:g} ms, rows, no token vectors", each.bare))
    parts.append(("opening encoders, once a wave of 1,000 items (a file a document; at least)", wave))
    rows = [
        [
            name,
            in_time(each),
            in_time(each * 1e8),
            in_time(each * 1e9),
            f"{formulas.cores_fed(work.parallel, each):,.0f}",
        ]
        for name, each in parts
    ]
    return table(["one after the other", "a chunk", "10^8 chunks", "10^9 chunks", "cores that it can feed"], rows)


def runs(costs: Costs) -> str:
    """Returns how long whole runs over a cluster take."""
    work = work_of(costs)
    rows = []
    for chunks in SIZES[1:]:
        for cores in CORES[1:]:
            parallel = work.parallel * chunks
            times = [
                formulas.run_s(parallel, cores, each * chunks) for each in (0.0, work.embedded, work.rows, work.files)
            ]
            rows.append([size(chunks), f"{cores:,}", *map(in_time, times)])
    columns = [
        "chunks",
        "cores",
        "parsing, chunking, encoding",
        "into an embedded record",
        "Qdrant, rows",
        "Qdrant, files",
    ]
    return table(columns, rows)


def embedded(costs: Costs) -> str:
    """Returns what the embedded default comes to."""
    growth = growth_of(costs)
    rows = []
    for chunks in _EMBEDDED:
        builds = formulas.builds_until(chunks)
        rows.append(
            [
                size(chunks),
                in_bytes(costs.record.file_bytes * chunks),
                in_bytes(growth.generation.at(chunks)),
                in_bytes(growth.own.at(chunks)),
                in_bytes(growth.exact_own.slope * formulas.changed_until_build(chunks)),
                in_time(growth.build.at(chunks)),
                f"{len(builds):,}: {in_time(sum(map(growth.build.at, builds)))}",
                in_time(growth.opening.at(chunks)),
                in_time(growth.dense.at(chunks)),
                f"{in_time(growth.sparse.at(chunks))} to {in_time(growth.sparse_line.at(chunks))}",
            ]
        )
    columns = [
        "chunks",
        "record",
        "generation",
        "own memory",
        "writes since, at most",
        "one build",
        "builds while it grows",
        "stop at opening",
    ]
    return table([*columns, "dense search", "sparse search"], rows)


def migration(costs: Costs) -> str:
    """Returns what a change of the model takes."""
    encoding, wire, growth = costs.encoding, costs.wire, growth_of(costs)
    work, client = work_of(costs), wire.write_ms / 1e3
    copy = formulas.copy_s((wire.read_ms + wire.write_ms) / 1e3, encoding.token_vectors_a_chunk, ROUND_TRIP_S)
    rows = []
    for chunks in SIZES:
        alone = encoding.tokens_a_chunk / encoding.indexer_tokens_per_s * chunks + growth.build.at(chunks)
        on_server = [_migrated(costs, cores, client) * chunks for cores in (encoding.cores, 64)]
        job = formulas.run_s(work.parallel * chunks, 256, work.rows * chunks)
        copies = (copy * chunks, copy * formulas.doubled_chunks(chunks))
        rows.append([size(chunks), *map(in_time, (alone, *on_server, job, *copies))])
    columns = [
        "chunks",
        f"embedded, {encoding.cores} cores",
        f"on a server, {encoding.cores} cores",
        "the same, 64 cores",
    ]
    columns.append("job into a new collection, 256 cores")
    return table([*columns, "a new generation there", "all of them while it grows"], rows)


def _migrated(costs: Costs, cores: int, client_s: float) -> float:
    """Returns a chunk's time in a migration on a server."""
    embed = costs.encoding.tokens_a_chunk / costs.encoding.core_tokens_per_s / cores
    chunks, tokens = costs.reading.chunks_a_document, costs.encoding.token_vectors_a_chunk
    return formulas.migrate_s(embed, chunks, tokens, client_s, ROUND_TRIP_S) / chunks


def money(costs: Costs) -> str:
    """Returns prices of embedding, by an assumed one."""
    encoding = costs.encoding
    rows = []
    for chunks in SIZES:
        seconds = formulas.embedding_s(chunks, encoding.tokens_a_chunk, encoding.core_tokens_per_s, 1)
        rows.append([size(chunks), f"{seconds / 3600:,.0f}", digits(formulas.money(1, seconds, PRICE_CORE_HOUR))])
    return table(["chunks", "core-hours", f"at {PRICE_CORE_HOUR} a core-hour (assumed)"], rows)


def timeouts(costs: Costs) -> tuple[float, float]:
    """Returns the chunks that fit into the hour that a build may take: embedded, and on a server."""
    growth, wire = growth_of(costs), costs.wire
    copy = formulas.copy_s((wire.read_ms + wire.write_ms) / 1e3, costs.encoding.token_vectors_a_chunk, ROUND_TRIP_S)
    return growth.build.size_within(BUILD_TIMEOUT_S), BUILD_TIMEOUT_S / copy
