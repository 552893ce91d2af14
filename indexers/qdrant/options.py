"""How a Qdrant server is reached."""

from __future__ import annotations

from dataclasses import dataclass

from indexers.options import DEFAULT_GRAPH, GraphShape


@dataclass(frozen=True, slots=True)
class QdrantOptions:
    """Where the server is, and how long it may take."""

    host: str
    grpc_port: int = 6334
    api_key: str | None = None
    tls: bool = False
    timeout_s: float = 5.0
    """Bound of one call from its beginning to its end, however slowly the bytes arrive."""
    build_timeout_s: float = 3_600.0
    """Bound of copying a collection into a new generation."""
    build_automatically: bool = True
    """Whether writes start builds by themselves when a collection has doubled; otherwise only `build()` does."""
    shard_number: int = 1
    """Shards of a collection; more spread it over a cluster."""
    replication_factor: int = 1
    """Copies of each shard."""
    prefix: str = "headrace"
    """The first part of the names of everything that is stored there."""
    graph: GraphShape = DEFAULT_GRAPH
    """The shape of the HNSW graphs that the server builds."""
    search_ef: int = 128
    """Breadth of a search in the HNSW graph; more finds more and takes longer."""
    max_collections: int = 1_000
    """Collections a tenant may have."""
