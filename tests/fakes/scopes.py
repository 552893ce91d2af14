"""Scopes and scores for tests that need some."""

from __future__ import annotations

from dataclasses import replace

from indexers.types import Epoch
from retrieval.caching import pair_scores
from retrieval.caching.pair_scores import PairScores
from retrieval.caching.s3fifo import S3Fifo
from retrieval.caching.tiered import Tiered
from retrieval.scope import ModelRevisions, Scope

_ACME = Scope("acme", "", "docs", "2026-01-01", Epoch(1, 2), ModelRevisions("model@r1"))


def scope(**changed: object) -> Scope:
    """Returns the scope of the tenant `acme`, changed as asked."""
    return replace(_ACME, **changed)  # type: ignore[arg-type]


def memory_scores(capacity_bytes: int = 1_000_000) -> PairScores:
    """Returns a cache of logits in this process."""
    return PairScores(Tiered(S3Fifo("scores", capacity_bytes, pair_scores.size_of)))
