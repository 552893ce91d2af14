"""What the paper assumes and nobody measured here: a cluster's network, its machines, the server's overheads."""

from __future__ import annotations

ROUND_TRIP_S = 0.002  # of a call to a server in the same data centre, a durable write to two copies among them
ROUND_TRIPS_S = (0.0005, ROUND_TRIP_S, 0.005)
COPIES = 2
HEADROOM = 1.25  # memory for segments that are being made beside those that serve
USABLE = 0.8  # of a node's memory and disk
NODE_MEMORY = 256e9
NODE_DISK = 4e12
PAYLOAD_INDEX_BYTES = 100.0  # of a chunk: its document, version and tenant
PAYLOAD_FACTOR = 1.5  # "for back-end indexing processes", Qdrant's capacity planning
SPARSE_ENTRY_BYTES = 8.0  # a point's number and a weight
LINKS = 16  # `index.hnsw_m`
OVERSAMPLED = 200.0  # `retrieval.candidates` times `index.qdrant.oversampling`
RERANKED = 50  # `rerank.depth`
PRICE_CORE_HOUR = 0.04  # an example; put your own
SHARDS = {1e6: 1, 1e7: 2, 1e8: 12, 1e9: 48}
SIZES = (1e6, 1e7, 1e8, 1e9)
CORES = (2, 16, 64, 256, 1_024)
