"""The serving state of an embedded collection: one immutable value, replaced whole by every write and every build.

What is not in the generation yet lives in the delta, an exact shard in memory that is made again from the record
whenever the collection is opened, so there is no second thing that must survive a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from encoders.term_statistics import TermStatistics
from indexers.exact import ExactShard
from indexers.filters import Filter
from indexers.record_read import StoredChunk
from indexers.record_write import Written
from indexers.shard import ChunkKeys, Shard, ShardHits, merge_hits
from indexers.types import CollectionDefinition, Counts, EncodedDocument, Epoch, SearchQuery


@dataclass(frozen=True, slots=True)
class ServingState:
    """Everything that a search reads."""

    definition: CollectionDefinition
    epoch: Epoch
    counts: Counts
    statistics: TermStatistics
    generation: Shard | None  # None before the first one, and when the stored one does not fit
    generation_sequence: int  # the write that the generation includes last; -1 without one
    generation_chunks: int  # as built
    delta: ExactShard

    def search(self, query: SearchQuery, filter: Filter | None) -> ShardHits:
        """Searches the generation and the delta as one."""
        shards: list[Shard] = [self.delta] if self.generation is None else [self.generation, self.delta]
        return merge_hits([shard.search(query, filter) for shard in shards], query.limit)

    def codes(self, keys: ChunkKeys) -> list[NDArray[np.uint8] | None]:
        """Returns the token codes of each chunk, uint8 [tokens * code_bytes]; None where there are none."""
        recent = self.delta.codes(keys)
        if self.generation is None:
            return recent
        built = self.generation.codes(keys)
        return [new if old is None else old for old, new in zip(built, recent, strict=True)]

    @property
    def changed_chunks(self) -> int:
        """Chunks that came or went since the generation was built."""
        kept = 0 if self.generation is None else self.generation.chunk_count
        return self.delta.chunk_count + self.generation_chunks - kept

    def after(self, written: Written, documents: Sequence[EncodedDocument]) -> ServingState:
        """Returns the state after a committed write that added these documents."""
        state = replace(
            self,
            epoch=Epoch(self.epoch.generation, written.sequence),
            counts=written.counts,
            generation=self.generation and self.generation.without(written.removed_rows),
            delta=self.delta.without(written.removed_rows).plus(_stored(written, documents)),
        )
        return state if state.generation_sequence >= 0 else state.with_own_statistics()

    def with_own_statistics(self) -> ServingState:
        """Counts the delta anew when it has doubled or halved: before the first generation it is all there is."""
        now, then = self.delta.chunk_count, self.statistics.document_count
        if then and then // 2 < now < then * 2:
            return self
        statistics = self.delta.count_statistics()
        return replace(self, statistics=statistics, delta=self.delta.weighed(statistics))


def _stored(written: Written, documents: Sequence[EncodedDocument]) -> list[StoredChunk]:
    rows = iter(written.added_rows.tolist())
    return [
        StoredChunk(
            row=next(rows),
            chunk_id=UUID(encoded.chunk.chunk_id).bytes,
            document_row=position,
            metadata=document.document.metadata,
            dense=encoded.dense,
            terms=encoded.terms,
            codes=None if encoded.codes is None or not len(encoded.codes) else encoded.codes.ravel(),
        )
        for position, document in enumerate(documents)
        for encoded in document.chunks
    ]
