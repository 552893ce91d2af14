"""What vectors a physical collection holds, and the server's parameters for them.

Dense scores are final: they are compared with thresholds and shown. So a quantized graph only chooses, and what it
chose is scored again by the original vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qdrant_client import models

from indexers.qdrant.options import QdrantOptions


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What vectors a physical collection holds."""

    dim: int
    token_dim: int = 0  # of the token vectors; 0 for none
    dense: str = "dense"
    sparse: str = "sparse"
    tokens: str = "tokens"


def vector_params(space: VectorSpace | None, options: QdrantOptions) -> dict[str, models.VectorParams]:
    """Returns the parameters of the dense and the token vectors; none for a collection that holds payloads only."""
    if space is None:
        return {}
    params = {space.dense: _dense(space.dim, options)}
    if space.token_dim:
        params[space.tokens] = _tokens(space.token_dim)
    return params


def sparse_params(space: VectorSpace | None, options: QdrantOptions) -> Mapping[str, models.SparseVectorParams] | None:
    """Returns the parameters of the sparse vectors."""
    if space is None:
        return None
    index = models.SparseIndexParams(on_disk=options.storage.graph_on_disk)
    return {space.sparse: models.SparseVectorParams(index=index)}


def search_params(options: QdrantOptions, limit: int, *, exact: bool, given: bool = False) -> models.SearchParams:
    """Returns how vectors are searched; with `given` hits, all of them are scored by the originals at once."""
    storage, quantized = options.storage, None
    if storage.quantize:
        originals = exact or given
        quantized = models.QuantizationSearchParams(
            ignore=originals, rescore=True, oversampling=None if originals else storage.oversampling
        )
    return models.SearchParams(hnsw_ef=max(options.search_ef, limit), exact=exact, quantization=quantized)


def _tokens(dim: int) -> models.VectorParams:
    """Late interaction only ever scores given candidates, so there is no graph."""
    return models.VectorParams(
        size=dim,
        distance=models.Distance.DOT,
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        hnsw_config=models.HnswConfigDiff(m=0),
        on_disk=True,
    )


def _dense(dim: int, options: QdrantOptions) -> models.VectorParams:
    graph, storage = options.graph, options.storage
    quantization = models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=storage.quantile, always_ram=True)
    )
    return models.VectorParams(
        size=dim,
        distance=models.Distance.DOT,
        hnsw_config=models.HnswConfigDiff(m=graph.m, ef_construct=graph.ef_construct, on_disk=storage.graph_on_disk),
        quantization_config=quantization if storage.quantize else None,
        on_disk=storage.vectors_on_disk,
    )
