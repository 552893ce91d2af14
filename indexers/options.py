"""What can be tuned about embedded collections, and the model whose vectors they hold."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from encoders.types import TokenCodec


class ShardKind(enum.Enum):
    """What a generation searches with."""

    EDGE = "edge"  # Qdrant Edge: an HNSW graph, sub-linear
    EXACT = "exact"  # NumPy brute force: the oracle, and fine for small collections


@dataclass(frozen=True, slots=True)
class SparseModel:
    """A model that weighs terms: its id and revision must agree, as those of vectors must."""

    model_id: str
    revision: str


@dataclass(frozen=True, slots=True)
class DenseModel:
    """The model whose vectors a collection holds: its id, revision and dimension must agree.

    The codec reads and writes token vectors, None for a model without them. A revision names one codec, so it is not
    compared.
    """

    model_id: str
    revision: str
    dim: int
    codec: TokenCodec | None = field(default=None, compare=False)
    sparse: SparseModel | None = None
    """The model of the sparse branch beside it; None for BM25."""


@dataclass(frozen=True, slots=True)
class GraphShape:
    """How an HNSW graph is built (Malkov and Yashunin, 2018)."""

    m: int = 16
    """Links of a node; more finds more and takes memory."""
    ef_construct: int = 128
    """Breadth of the search for a new node's neighbours; more makes a better graph and takes longer."""


DEFAULT_GRAPH = GraphShape()


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """How embedded collections behave."""

    kind: ShardKind = ShardKind.EDGE
    build_after_chunks: int = 16_384
    """A generation is built when added and removed chunks since the last one pass this, and `build_after_share`. Up to
    about here brute force is as quick as the graph, and serving a new generation stops the process for a moment."""
    build_after_share: float = 0.1
    """Share of the generation's chunks that must have changed as well."""
    build_automatically: bool = True
    """Whether writes start builds by themselves; otherwise only `build()` does."""
    build_timeout_s: float = 3_600.0
    """A build that takes longer is stopped and counted as failed."""
    build_niceness: int = 10
    """How far the building process steps back behind others."""
    graph: GraphShape = DEFAULT_GRAPH
    """The shape of the HNSW graphs that are built."""
    search_ef: int = 128
    """Breadth of a search in the HNSW graph; more finds more and takes longer."""
    max_collections: int = 1_000
    """Collections a tenant may have."""
