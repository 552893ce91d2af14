"""What the Qdrant index takes for granted about multivectors, asked of Qdrant's own engine in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import qdrant_edge as engine

from encoders.late.codec import max_similarities
from tests.fakes.encoded import CODEC, token_vectors


def test_engine_scores_multivectors_as_we_do(tmp_path: Path) -> None:
    """MaxSim is a sum of plain dot products, needs no graph, keeps to the ids; a point without tokens is missing."""
    texts = ["red fish", "one green fish in a bowl", "bird", "small red bird on a tree"]
    passages = [CODEC.decode(CODEC.encode(token_vectors(text))) for text in texts]
    query = token_vectors("red bird sings") * np.array([[0.6], [0.3], [0.1]], dtype=np.float32)
    tokens = engine.EdgeVectorParams(
        size=CODEC.dim,
        distance=engine.Distance.Dot,
        multivector_config=engine.MultiVectorConfig(engine.MultiVectorComparator.MaxSim),
        hnsw_config=engine.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000),
        on_disk=True,
    )
    dense = engine.EdgeVectorParams(size=1, distance=engine.Distance.Dot)
    shard = engine.EdgeShard.create(str(tmp_path), engine.EdgeConfig(vectors={"dense": dense, "tokens": tokens}))
    points = [engine.Point(n, {"dense": [1.0], "tokens": one.tolist()}, {}) for n, one in enumerate(passages)]
    points.append(engine.Point(len(points), {"dense": [1.0]}, {}))
    shard.update(engine.UpdateOperation.upsert_points(points))
    request = engine.QueryRequest(
        limit=4,
        query=engine.Query.Nearest(query.tolist(), using="tokens"),
        filter=engine.Filter(must=[engine.HasIdCondition({1, 2, 3, 4})]),
        params=engine.SearchParams(exact=True),
        with_payload=False,
        with_vector=False,
    )
    expected = max_similarities(query, np.concatenate(passages), np.cumsum([len(one) for one in passages]))
    found = {point.id: point.score for point in shard.query(request)}
    shard.close()
    assert found == pytest.approx({n: float(expected[n]) for n in (1, 2, 3)}, abs=1e-5)
