"""Builds a generation from a record in its own process, as `python -m indexers.build` with the arguments of `main`.

The engine's index build holds the GIL from beginning to end (minutes for a large collection), so the serving process
must not do it (case VEC-13). Rows are streamed in batches: memory does not grow with the corpus, beyond what the engine
maps from files. The state that is built is the one of the last committed write when the process starts; later writes do
not disturb it, since the record keeps removed rows until this generation is published.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from encoders.statistics_file import save_statistics
from indexers.definition import no_statistics
from indexers.generation import FORMAT_VERSION, STATISTICS, Manifest, field_names, write_manifest
from indexers.generation_write import write_arrays_and_graph
from indexers.options import GraphShape, ShardKind
from indexers.record_read import RecordReader, StoredChunk

_BATCH = 500


def build_generation(record: Path, target: Path, number: int, kind: ShardKind, graph: GraphShape) -> None:
    """Writes a whole generation into `target`, which must not exist; the manifest comes last."""
    reader = RecordReader(record)
    try:
        head, definition = reader.head(), reader.definition()
        target.mkdir(parents=True)
        statistics = no_statistics(definition).collected(reader.terms(head.sequence, _BATCH * 4))
        save_statistics(statistics, target / STATISTICS)
        if kind is ShardKind.EDGE and head.counts.chunks:
            rows = _until(reader, head.sequence, head.last_row)
            write_arrays_and_graph(target, rows, definition, statistics, graph)
        write_manifest(
            target,
            Manifest(
                format_version=FORMAT_VERSION,
                generation=number,
                kind=kind.value,
                sequence=head.sequence,
                last_row=head.last_row,
                chunk_count=head.counts.chunks,
                dim=definition.dim,
                dense_revision=definition.dense_revision,
                code_bytes=definition.code_bytes,
                fields=field_names(definition.fields),
                file_bytes={},
                statistics_crc32=0,
            ),
        )
    finally:
        reader.close()


def main(arguments: list[str]) -> None:
    """Runs as a child process; anything that goes wrong ends up on stderr and in the exit code."""
    record, target, number, kind, niceness, m, ef_construct = arguments
    _end_with_parent()
    os.nice(int(niceness))
    graph = GraphShape(int(m), int(ef_construct))
    build_generation(Path(record), Path(target), int(number), ShardKind(kind), graph)


def _until(reader: RecordReader, sequence: int, last_row: int) -> Iterator[list[StoredChunk]]:
    for batch in reader.chunks(sequence, 0, _BATCH):
        yield batch
        if batch[-1].row >= last_row:
            return


def _end_with_parent() -> None:
    """Asks Linux to kill this process when its parent dies, so that no orphan writes where the next server builds."""
    if sys.platform == "linux":
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
