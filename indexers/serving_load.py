"""Reads a collection's serving state from its folder: at opening, after a build, after a change of its schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import structlog

from encoders.statistics_file import load_statistics
from encoders.term_statistics import TermStatistics
from indexers.definition import no_statistics
from indexers.errors import IndexCorrupt, IndexUnavailable
from indexers.exact import ExactShard
from indexers.generation import STATISTICS, Manifest, fits, read_manifest
from indexers.generation_shard import open_generation_shard
from indexers.options import IndexOptions, ShardKind
from indexers.record_read import RecordReader, StoredChunk
from indexers.serving import ServingState
from indexers.shard import Shard
from indexers.types import CollectionDefinition, Epoch

_BATCH = 8_192

_log = structlog.get_logger()


def load_state(record: Path, place: Path | None, options: IndexOptions) -> ServingState:
    """Reads the state of the last committed write, with the generation at `place`; no write may run meanwhile.

    A generation that is broken, or was built for another schema, is passed over: the record has everything, and serves
    from memory until the next build.

    Raises:
        IndexCorrupt: the record cannot be read.
    """
    reader = RecordReader(record)
    try:
        state = None if place is None else _with_generation(reader, place, options)
        return state or _without_generation(reader, 0 if place is None else int(place.name))
    finally:
        reader.close()


def _with_generation(reader: RecordReader, place: Path, options: IndexOptions) -> ServingState | None:
    definition, head = reader.definition(), reader.head()
    try:
        manifest = read_manifest(place)
        if not fits(manifest, definition, options.kind):
            return None
        statistics = load_statistics(place / STATISTICS)
        generation = _open_shard(reader, place, manifest, definition, statistics, options.search_ef)
    except (IndexCorrupt, IndexUnavailable) as error:
        _log.warning("generation_unusable", collection=definition.key.collection, place=str(place), reason=str(error))
        return None
    delta = ExactShard(definition.fields, statistics)
    return ServingState(
        definition=definition,
        epoch=Epoch(manifest.generation, head.sequence),
        counts=head.counts,
        statistics=statistics,
        generation=generation.without(reader.removed_rows(manifest.sequence, head.sequence)),
        generation_sequence=manifest.sequence,
        generation_chunks=manifest.chunk_count,
        delta=_filled(delta, reader.chunks(head.sequence, manifest.last_row, _BATCH)),
    )


def _without_generation(reader: RecordReader, number: int) -> ServingState:
    definition, head = reader.definition(), reader.head()
    nothing = no_statistics(definition)
    delta = ExactShard(definition.fields, nothing)
    state = ServingState(
        definition=definition,
        epoch=Epoch(number, head.sequence),
        counts=head.counts,
        statistics=nothing,
        generation=None,
        generation_sequence=-1,
        generation_chunks=0,
        delta=_filled(delta, reader.chunks(head.sequence, 0, _BATCH)),
    )
    return state.with_own_statistics()


def _open_shard(
    reader: RecordReader,
    place: Path,
    manifest: Manifest,
    definition: CollectionDefinition,
    statistics: TermStatistics,
    search_ef: int,
) -> Shard:
    if manifest.chunk_count == 0:
        return ExactShard(definition.fields, statistics)
    if manifest.kind == ShardKind.EDGE.value:
        return open_generation_shard(place, definition, search_ef)
    shard = ExactShard(definition.fields, statistics)
    return _filled(shard, _up_to(reader.chunks(manifest.sequence, 0, _BATCH), manifest.last_row))


def _filled(shard: ExactShard, batches: Iterator[list[StoredChunk]]) -> ExactShard:
    for batch in batches:
        shard = shard.plus(batch)
    return shard


def _up_to(batches: Iterator[list[StoredChunk]], last_row: int) -> Iterator[list[StoredChunk]]:
    for batch in batches:
        yield [chunk for chunk in batch if chunk.row <= last_row]
