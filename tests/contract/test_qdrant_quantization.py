"""What quantization takes for granted, asked of Qdrant's own engine in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import qdrant_edge as engine

_DIM, _COUNT, _LIMIT = 64, 3_000, 10


def test_rescored_hits_have_the_scores_of_the_originals(tmp_path: Path) -> None:
    """int8 vectors choose, and what comes back is scored, to the last digit that floats have, by the original ones."""
    random = np.random.default_rng(7)
    vectors = random.normal(size=(_COUNT, _DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    dense = engine.EdgeVectorParams(
        size=_DIM,
        distance=engine.Distance.Dot,
        quantization_config=engine.ScalarQuantizationConfig(engine.ScalarType.Int8, quantile=0.99, always_ram=True),
    )
    shard = engine.EdgeShard.create(str(tmp_path), engine.EdgeConfig(vectors={"dense": dense}))
    points = [engine.Point(n, {"dense": one.tolist()}, {}) for n, one in enumerate(vectors)]
    shard.update(engine.UpdateOperation.upsert_points(points))
    shard.optimize()
    query = vectors[17] + 0.3 * vectors[18]
    best = np.argsort(-(vectors @ query))[:_LIMIT]
    for oversampling in (2.0, 4.0):
        quantized = engine.QuantizationSearchParams(rescore=True, oversampling=oversampling)
        found = shard.query(
            engine.QueryRequest(
                limit=_LIMIT,
                query=engine.Query.Nearest(query.tolist(), using="dense"),
                params=engine.SearchParams(hnsw_ef=128, quantization=quantized),
                with_payload=False,
                with_vector=False,
            )
        )
        scores = {int(hit.id): hit.score for hit in found}
        assert scores == pytest.approx({n: float(vectors[n] @ query) for n in scores}, abs=1e-6)
        assert len(scores.keys() & set(best.tolist())) >= _LIMIT - 1
    shard.close()
