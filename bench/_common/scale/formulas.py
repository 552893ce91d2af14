"""The formulas of `docs/scale.md`: plain functions of unit costs, each tested by itself.

Bytes are bytes and times are seconds. What a function takes as a default is an assumption, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FLOAT_BYTES = 4
LINK_BYTES = 4  # a link is the number of a point within its segment


@dataclass(frozen=True, slots=True)
class Power:
    """`factor * n ** exponent`: how a cost grows, as sizes that were measured say it."""

    factor: float
    exponent: float

    def at(self, n: float) -> float:
        """Returns the cost at a size."""
        return float(self.factor * n**self.exponent)

    def size_within(self, cost: float) -> float:
        """Returns the size whose cost this is."""
        return float((cost / self.factor) ** (1 / self.exponent))


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """`base + slope * ln(n)`: how a search in a graph grows (Malkov and Yashunin, 2018, section 4.2.1)."""

    base: float
    slope: float

    def at(self, n: float) -> float:
        """Returns the cost at a size."""
        return self.base + self.slope * math.log(n)


@dataclass(frozen=True, slots=True)
class Line:
    """`base + slope * n`."""

    base: float
    slope: float

    def at(self, n: float) -> float:
        """Returns the cost at a size."""
        return self.base + self.slope * n


def power(sizes: Sequence[float], costs: Sequence[float]) -> Power:
    """Fits a power by least squares of the logarithms."""
    exponent, constant = _fitted(np.log(np.asarray(sizes)), np.log(np.asarray(costs)))
    return Power(math.exp(constant), exponent)


def logarithmic(sizes: Sequence[float], costs: Sequence[float]) -> Logarithmic:
    """Fits a logarithm by least squares; one that falls with the size is taken as flat, at the mean."""
    slope, base = _fitted(np.log(np.asarray(sizes)), np.asarray(costs))
    return Logarithmic(base, slope) if slope > 0 else Logarithmic(float(np.mean(costs)), 0.0)


def line(sizes: Sequence[float], costs: Sequence[float]) -> Line:
    """Fits a line by least squares."""
    slope, base = _fitted(np.asarray(sizes), np.asarray(costs))
    return Line(base, slope)


def _fitted(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Returns slope and base.

    Raises:
        ValueError: there are fewer than two sizes.
    """
    if len(x) < 2:
        raise ValueError("growth needs at least two sizes")
    slope, base = np.polyfit(x, y, 1)
    return float(slope), float(base)


def embedding_s(chunks: float, tokens_a_chunk: float, core_tokens_per_s: float, cores: float) -> float:
    """Returns how long it takes to embed chunks on so many cores: machines share nothing, so it is linear."""
    return chunks * tokens_a_chunk / (core_tokens_per_s * cores)


def link_bytes(m: int) -> float:
    """Returns the bytes of a vector's links in an HNSW graph: `(M_max0 + m_L * M_max) * bytes_per_link`.

    With `M_max0 = 2M`, `M_max = M`, `m_L = 1 / ln(M)` (Malkov and Yashunin, 2018, sections 4.1 and 4.2.3).
    """
    return (2 * m + m / math.log(m)) * LINK_BYTES


def planned_bytes(vectors: float, dim: int) -> float:
    """Returns the memory that Qdrant's documentation plans for vectors held in it: `vectors * dim * 4 * 1.5`."""
    return vectors * dim * FLOAT_BYTES * 1.5


def id_bytes(external: int = 16) -> int:
    """Returns the bytes of a point's ids and version: 4 of the version, the id by number, the number by id.

    After Qdrant's account of LAION-400M (16 for an id by number, whatever its kind); our ids are UUIDs.
    """
    return 4 + 16 + external + 4


@dataclass(frozen=True, slots=True)
class PointBytes:
    """A chunk on a Qdrant server, in one copy."""

    originals: float  # the dense vector as it came
    quantized: float  # its int8 copy; 0 without
    links: float
    ids: float
    sparse: float  # of the inverted index
    payload_indexes: float
    tokens: float  # the multivector
    payload: float
    document: float  # a chunk's share of its document's own point

    def memory(self, *, originals_on_disk: bool) -> float:
        """Returns what must be in memory for a search to touch no disk before it scores again."""
        held = self.quantized + self.links + self.ids + self.sparse + self.payload_indexes
        return held if originals_on_disk else held + self.originals

    @property
    def disk(self) -> float:
        """Returns all of it: what is in memory stands in files too, and sparse vectors beside their index."""
        indexed = self.quantized + self.links + self.ids + 2 * self.sparse + self.payload_indexes
        return self.originals + indexed + self.tokens + self.payload + self.document


def int8_bytes(dim: int) -> int:
    """Returns a quantized vector: a byte a dimension, and a float of its own."""
    return dim + FLOAT_BYTES


def token_bytes(token_vectors: float, token_dim: int, bytes_a_number: float = FLOAT_BYTES) -> float:
    """Returns a chunk's multivector; on a server codes are decoded to floats before they are stored."""
    return token_vectors * token_dim * bytes_a_number


def nodes(needed: float, a_node: float, copies: int = 2, usable: float = 0.8) -> int:
    """Returns the nodes that hold so much in copies, at least three, which a cluster needs to lose one.

    A node is filled to `usable`: Qdrant calls more than 80 % of its memory a sign of a problem.
    """
    return max(3, copies, math.ceil(needed * copies / (a_node * usable)))


def run_s(parallel_core_s: float, cores: float, serial_s: float) -> float:
    """Returns how long a run over a cluster takes: stages run beside the driver, and the slower of the two decides."""
    return max(parallel_core_s / cores, serial_s)


def cores_fed(parallel_core_s: float, serial_s: float) -> float:
    """Returns the cores from which on more of them do not help."""
    return parallel_core_s / serial_s


def chunk_pieces(chunks: float, token_vectors_a_chunk: float, tokens_a_write: int = 1_024) -> int:
    """Returns in how many calls chunks are written to a Qdrant server."""
    a_piece = max(1, math.ceil(tokens_a_write / max(token_vectors_a_chunk, 1.0)))
    return math.ceil(chunks / a_piece)


def write_calls(documents: int, chunks: float, token_vectors_a_chunk: float) -> int:
    """Returns the calls, one after the other, of a write of new documents to a Qdrant server in one turn.

    Chunks go in pieces, and so do documents, of which 256 with 500,000 characters are one; three reads and three
    changes of points are the turn and its conditions, and one call removes older chunks.
    """
    return math.ceil(documents / 256) + chunk_pieces(chunks, token_vectors_a_chunk) + 7


LOOK_CALLS = 3  # the collection's point twice, and the documents


def server_write_s(
    documents: int, chunks_a_document: float, token_vectors_a_chunk: float, client_chunk_s: float, round_trip_s: float
) -> float:
    """Returns the driver's time for one document: compared, written in a batch of so many, and proven."""
    chunks = documents * chunks_a_document
    calls = write_calls(documents, chunks, token_vectors_a_chunk) + 2 * LOOK_CALLS
    return (calls * round_trip_s + chunks * client_chunk_s) / documents


def migrate_s(
    embed_chunk_s: float,
    chunks_a_document: float,
    token_vectors_a_chunk: float,
    client_chunk_s: float,
    round_trip_s: float,
) -> float:
    """Returns a document's time in a migration on a server, where one batch is encoded while the last is written.

    Three calls read a batch of 32; one removes what is there, some write its chunks, and one its documents.
    """
    batch = 32
    pieces = chunk_pieces(batch * chunks_a_document, token_vectors_a_chunk)
    encoded_s = chunks_a_document * embed_chunk_s + 3 / batch * round_trip_s
    written_s = chunks_a_document * client_chunk_s + (2 + pieces) / batch * round_trip_s
    return max(encoded_s, written_s)


def copy_s(client_chunk_s: float, token_vectors_a_chunk: float, round_trip_s: float) -> float:
    """Returns a chunk's time when a collection on a server is copied into a new generation: 50 a read, then pieces."""
    read = 50
    return client_chunk_s + (1 + chunk_pieces(read, token_vectors_a_chunk)) / read * round_trip_s


def changed_until_build(chunks: float, at_least: float = 16_384, share: float = 0.1) -> float:
    """Returns how many chunks of an embedded collection of a size change before a generation is built."""
    return max(at_least, share * chunks)


def builds_until(chunks: float) -> list[float]:
    """Returns the sizes of all generations that are built while an embedded collection grows, the last one included.

    A generation is built when enough has changed since the one before; each build begins anew.
    """
    sizes, built = [], 0.0
    while (following := built + changed_until_build(built)) < chunks:
        sizes.append(following)
        built = following
    return [*sizes, chunks]


def doubled_chunks(chunks: float, smallest: float = 64) -> float:
    """Returns how many chunks are copied while a collection on a server grows to a size: at each doubling all."""
    total, size = 0.0, smallest
    while size <= chunks:
        total += size
        size *= 2
    return total


@dataclass(frozen=True, slots=True)
class Asked:
    """One search of all shards."""

    core_s: float  # of all shards together
    slowest_s: float  # of one of them, which the caller waits for


def scattered(cost: Power | Logarithmic | Line, chunks: float, shards: int) -> Asked:
    """Returns what a search of every shard costs, where one of `n` chunks costs `cost.at(n)`."""
    one = cost.at(chunks / shards)
    return Asked(one * shards, one)


def money(cores: float, seconds: float, price_core_hour: float) -> float:
    """Returns a price, in the currency of the price of a core for an hour."""
    return cores * seconds / 3600 * price_core_hour
