"""Candidates to hits: each score joined to its passage by id, and the filter checked once more on what is served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexers.filters import Filter
from indexers.matching import matches
from indexers.types import FieldType, Passage
from retrieval.types import FusedCandidate, Hit


def join_passages(
    candidates: Sequence[FusedCandidate],
    passages: Sequence[Passage],
    filter: Filter | None,
    fields: Mapping[str, FieldType],
) -> list[Hit]:
    """Returns the hits in the candidates' order; candidates whose passage is gone or does not pass are left out."""
    found = {passage.chunk_id: passage for passage in passages}
    return [
        Hit(passage, candidate.score, candidate.parts)
        for candidate in candidates
        if (passage := found.get(candidate.chunk_id)) is not None
        and (filter is None or matches(filter, passage.metadata, fields))
    ]
