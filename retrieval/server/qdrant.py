"""How the Qdrant server is reached and used, as the settings say; a part of the composition root."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from indexers.options import GraphShape
from indexers.qdrant.options import ClusterShape, QdrantOptions, StorageShape
from retrieval.settings.engines import IndexSettings


def qdrant_options(index: IndexSettings, graph: GraphShape | None = None) -> QdrantOptions:
    """Returns the options that the settings ask for."""
    server = index.qdrant
    address = urlsplit(server.url)
    return QdrantOptions(
        host=address.hostname or "",
        grpc_port=address.port or 6334,
        rest_url=server.rest_url,
        prefer_grpc=server.prefer_grpc,
        api_key=server.api_key.get_secret_value() or None,
        tls=address.scheme == "https",
        ca_file=Path(server.ca_file) if server.ca_file else None,
        timeout_s=server.timeout_ms / 1e3,
        build_timeout_s=index.build_timeout_s,
        lease_s=server.lease_ms / 1e3,
        cluster=_cluster(index),
        storage=_storage(index),
        graph=graph or GraphShape(index.hnsw_m, index.hnsw_ef_construct),
        search_ef=index.hnsw_ef,
        max_collections=index.max_collections,
    )


def _cluster(index: IndexSettings) -> ClusterShape:
    server = index.qdrant
    return ClusterShape(
        shard_number=server.shards,
        replication_factor=server.replicas,
        write_consistency_factor=server.write_copies,
        write_ordering=server.write_ordering,
        read_consistency=server.read_consistency,
    )


def _storage(index: IndexSettings) -> StorageShape:
    server = index.qdrant
    return StorageShape(
        vectors_on_disk=server.vectors_on_disk,
        graph_on_disk=server.graph_on_disk,
        payload_on_disk=server.payload_on_disk,
        quantize=server.quantize,
        quantile=server.quantile,
        oversampling=server.oversampling,
    )
