"""How a Qdrant server or cluster is reached, and how collections are laid out there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from indexers.options import DEFAULT_GRAPH, GraphShape

Ordering: TypeAlias = Literal["weak", "medium", "strong"]
Consistency: TypeAlias = Literal["one", "majority", "quorum", "all"]


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """How a collection is spread over the nodes of a cluster; all of it is set when a generation is made."""

    shard_number: int = 1
    """Shards of a collection; more spread it over more nodes."""
    replication_factor: int = 1
    """Copies of each shard."""
    write_consistency_factor: int = 0
    """Copies that must have a write before it is acknowledged; 0 means more than half of them."""
    write_ordering: Ordering = "strong"
    """Who orders writes of points: each node, the node that leads now, or one leader for good."""
    read_consistency: Consistency = "one"
    """How many copies a read asks before it believes one."""

    @property
    def confirmations(self) -> int:
        """The copies that must have a write."""
        return self.write_consistency_factor or self.replication_factor // 2 + 1


@dataclass(frozen=True, slots=True)
class StorageShape:
    """What stays on the server's disks and what is kept in its memory."""

    vectors_on_disk: bool = False
    graph_on_disk: bool = False
    payload_on_disk: bool = True
    quantize: bool = False
    """Whether dense vectors are searched as int8, and the best of them scored again by the originals."""
    quantile: float = 0.99
    """Share of the values that the int8 scale covers; what lies beyond is cut off."""
    oversampling: float = 2.0
    """How many more hits than asked for are scored again by the originals."""


ONE_NODE = ClusterShape()
IN_MEMORY = StorageShape()


@dataclass(frozen=True, slots=True)
class QdrantOptions:
    """Where the server is, how long it may take, and how collections are laid out."""

    host: str
    grpc_port: int = 6334
    rest_url: str = ""
    """Its REST address, which snapshots, and all calls without gRPC, need; empty means port 6333 of the same host."""
    prefer_grpc: bool = True
    api_key: str | None = None
    tls: bool = False
    ca_file: Path | None = None
    """The certificates that the server's one is checked by; None takes the system's."""
    timeout_s: float = 5.0
    """Bound of one call from its beginning to its end, however slowly the bytes arrive."""
    build_timeout_s: float = 3_600.0
    """Bound of copying a collection into a new generation."""
    build_automatically: bool = True
    """Whether writes start builds by themselves when a collection has doubled; otherwise only `build()` does."""
    lease_s: float = 15.0
    """How long a writing process may be silent before another takes its turn; at least three calls' time."""
    turn_wait_s: float = 60.0
    """How long a write waits for its turn."""
    cluster: ClusterShape = ONE_NODE
    storage: StorageShape = IN_MEMORY
    prefix: str = "headrace"
    """The first part of the names of everything that is stored there."""
    graph: GraphShape = DEFAULT_GRAPH
    """The shape of the HNSW graphs that the server builds."""
    search_ef: int = 128
    """Breadth of a search in the HNSW graph; more finds more and takes longer."""
    max_collections: int = 1_000
    """Collections a tenant may have."""

    @property
    def rest_address(self) -> str:
        """The REST address."""
        return self.rest_url or f"{'https' if self.tls else 'http'}://{self.host}:6333"

    @property
    def silence_s(self) -> float:
        """How long a writer may be silent: no call of its turn can still be under way then."""
        return max(self.lease_s, 3 * self.timeout_s)
