"""Unit vectors one under another, in memory that grows without moving what is there.

One array would be copied whole whenever it is full: at 100,000 rows, that stops the event loop for tens of
milliseconds. Here the first rows lie in an array that doubles while it is small, so that a partition of a few questions
costs a few kilobytes; from then on, memory comes in chunks, whose pages are taken from the system as they are written.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

CHUNK_ROWS = 16_384
STEP_ROWS = 1_024
"""Rows that are worked on in one step: about a millisecond for the dearest step at 384 dimensions."""

_FIRST_ROWS = 8


class Rows:
    """A growing array float32 [n, dim], without gaps. Not thread-safe."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._count = 0
        self._chunks: list[NDArray[np.float32]] = []

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> NDArray[np.float32]:
        """Returns a view of one row."""
        row: NDArray[np.float32] = self._chunks[place // CHUNK_ROWS][place % CHUNK_ROWS]
        return row

    def __setitem__(self, place: int, vector: NDArray[np.float32]) -> None:
        self[place][:] = vector

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows that memory was taken for, to whole steps once there is more than one."""
        return min(self._held, -(-self._count // STEP_ROWS) * STEP_ROWS) * self.dim * 4

    def append(self, vector: NDArray[np.float32]) -> None:
        """Adds a row at the end."""
        if self._count == self._held:
            self._grow()
        self._count += 1
        self[self._count - 1] = vector

    def pop(self) -> None:
        """Drops the last row, and its chunk with the last row of that."""
        self._count -= 1
        if self._count % CHUNK_ROWS == 0:
            self._chunks.pop()

    def part(self, start: int, most: int = CHUNK_ROWS) -> NDArray[np.float32]:
        """Returns a view of the rows from there on, to the end of their chunk, `most` at most; [0 .. most, dim]."""
        if start >= self._count:
            return np.empty((0, self.dim), dtype=np.float32)
        within = start % CHUNK_ROWS
        return self._chunks[start // CHUNK_ROWS][within : within + min(most, self._count - start)]

    def cosines(self, places: NDArray[np.int64], vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the inner products of the rows at these ascending places with a vector.

        Each row is summed by itself, so equal rows have equal products wherever they lie; those of a product of a
        matrix and a vector depend on the place in their last bits.
        """
        found = np.empty(len(places), dtype=np.float32)
        cuts = np.searchsorted(places, np.arange(len(self._chunks) + 1) * CHUNK_ROWS).tolist()
        for number, chunk in enumerate(self._chunks):
            # In pieces, so that what is gathered stays in the processor's caches.
            for first in range(cuts[number], cuts[number + 1], STEP_ROWS):
                piece = slice(first, min(first + STEP_ROWS, cuts[number + 1]))
                _products(chunk, places[piece] - number * CHUNK_ROWS, vector, found[piece])
        return found

    @property
    def _held(self) -> int:
        return len(self._chunks[0]) + (len(self._chunks) - 1) * CHUNK_ROWS if self._chunks else 0

    def _grow(self) -> None:
        if not self._chunks or len(self._chunks[0]) == CHUNK_ROWS:
            further = bool(self._chunks)
            self._chunks.append(untouched(CHUNK_ROWS, self.dim) if further else self._small(_FIRST_ROWS))
            return
        [first] = self._chunks
        small = len(first) < STEP_ROWS
        larger = self._small(2 * len(first)) if small else untouched(CHUNK_ROWS, self.dim)
        larger[: len(first)] = first
        self._chunks = [larger]

    def _small(self, rows: int) -> NDArray[np.float32]:
        return np.empty((rows, self.dim), dtype=np.float32)


def untouched(rows: int, columns: int) -> NDArray[np.float32]:
    """Returns zeros whose memory is taken page by page as it is written, whatever their number.

    NumPy asks for huge pages for a large array; the first write to each was measured to take 4.5 ms here.
    """
    memory = mmap.mmap(-1, rows * columns * 4, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=np.float32).reshape(rows, columns)


def _products(
    chunk: NDArray[np.float32], within: NDArray[np.int64], vector: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    stretch = slice(int(within[0]), int(within[-1]) + 1)
    if stretch.stop - stretch.start > 2 * len(within):
        np.vecdot(chunk[within], vector, out=out)
    else:
        # Where most rows are wanted, reading all is cheaper than copying them.
        out[:] = np.vecdot(chunk[stretch], vector)[within - stretch.start]
