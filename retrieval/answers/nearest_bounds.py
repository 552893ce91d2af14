"""Upper bounds of the cosines of many rows with a vector, from a fifth or a quarter of the work.

A unit vector is split into its coordinates along a few orthonormal directions and the length of the rest. The inner
product of two vectors is then at most the product of their coordinates plus the product of their rests' lengths (Cauchy
and Schwarz). With the rest's length as a last coordinate that is one inner product. It is tight when the directions
hold most of what the vectors are made of (`nearest_directions`); the bound holds whatever they are.

There are two levels: coarse bounds from the first directions, fine ones from all, which take up where the coarse ended.
Rows come in blocks, each with the directions it was split by, so new directions are taken over block by block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.nearest_directions import find_directions
from retrieval.answers.nearest_rows import CHUNK_ROWS, STEP_ROWS, Rows, untouched

SCAN_ROWS = 4_096
"""Up to so many rows no bounds are kept: the cosines themselves take less than half a millisecond."""

ROUNDING = 1e-5
"""How far a bound may fall short of the cosine by rounding in float32."""

# Of the questions of quora-cache under MiniLM, 79 directions hold 61 % of the squared length, 94 of them 66 %.
_COARSE = 79
_FINE = 94
_LEAST_DIM = 2 * _FINE
_NUMBERS = _FINE + 2


class _Block:
    """The numbers of `CHUNK_ROWS` rows by one set of directions."""

    def __init__(self, directions: NDArray[np.float32]) -> None:
        self.directions = directions
        # Number by number rather than row by row: the product with a vector is 1.5 times as fast.
        self.numbers = untouched(_NUMBERS, CHUNK_ROWS)

    def write(self, within: int, rows: NDArray[np.float32]) -> None:
        self.numbers[:, within : within + len(rows)] = _split(rows, self.directions).T


class Bounds:
    """Keeps bounds for rows, once they are many. Not thread-safe."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._blocks: list[_Block | None] = []
        self._directions: NDArray[np.float32] | None = None
        self._due: Iterator[None] | None = None
        self._refit_at = SCAN_ROWS
        self._coming: tuple[int, _Block] | None = None  # replaces the block of that number when it is complete

    @property
    def used_bytes(self) -> int:
        """Bytes of the numbers that memory was taken for: those of the rows, to whole steps."""
        left = [len(self._rows) - number * CHUNK_ROWS for number, block in enumerate(self._blocks) if block]
        steps = sum(-(-min(rows, CHUNK_ROWS) // STEP_ROWS) for rows in left)
        return steps * STEP_ROWS * _NUMBERS * 4

    def appended(self) -> None:
        """Takes in the last row, which is new."""
        if (len(self._rows) - 1) % CHUNK_ROWS == 0:
            self._blocks.append(None if self._directions is None else _Block(self._directions))
        self.changed(len(self._rows) - 1)

    def changed(self, place: int) -> None:
        """Takes in a row that was written."""
        number, within = divmod(place, CHUNK_ROWS)
        coming = self._coming[1] if self._coming and self._coming[0] == number else None
        for block in (self._blocks[number], coming):
            if block is not None:
                block.write(within, self._rows[place][None])

    def popped(self) -> None:
        """Forgets the last row, which is gone."""
        if len(self._rows) % CHUNK_ROWS == 0:
            self._blocks.pop()

    def step(self) -> None:
        """Does one step of what is due: directions are found anew whenever the rows have doubled."""
        if self._due is None and len(self._rows) > self._refit_at and self._rows.dim >= _LEAST_DIM:
            self._refit_at = 2 * len(self._rows)
            self._due = self._refit()
        if self._due is not None and next(self._due, self) is self:
            self._due = None

    def coarse(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns bounds float32 [n] for a unit vector; the cosines themselves where a block has no numbers."""
        found = np.empty(len(self._rows), dtype=np.float32)
        weights = _Weights(vector)
        for number, block in enumerate(self._blocks):
            out = found[number * CHUNK_ROWS : (number + 1) * CHUNK_ROWS]
            if block is None:
                np.matmul(self._rows.part(number * CHUNK_ROWS), vector, out=out)
            else:
                np.matmul(weights.of(block)[: _COARSE + 1], block.numbers[: _COARSE + 1, : len(out)], out=out)
        return found

    def refine(self, vector: NDArray[np.float32], found: NDArray[np.float32]) -> None:
        """Lowers coarse bounds to fine ones, in place."""
        weights = _Weights(vector)
        for number, block in enumerate(self._blocks):
            if block is not None:
                out = found[number * CHUNK_ROWS : (number + 1) * CHUNK_ROWS]
                further = weights.of(block)[_COARSE:].copy()
                further[0] = -further[0]  # the coarse rest makes way for further directions and what they leave
                out += further @ block.numbers[_COARSE:, : len(out)]

    def _refit(self) -> Iterator[None]:
        for directions in find_directions(self._rows, _FINE):
            if directions is not None:
                self._directions = directions
                yield from self._convert(directions)
            yield

    def _convert(self, directions: NDArray[np.float32]) -> Iterator[None]:
        number = 0
        while number < len(self._blocks):
            block = _Block(directions)
            self._coming = (number, block)
            for within in range(0, CHUNK_ROWS, STEP_ROWS):
                block.write(within, self._rows.part(number * CHUNK_ROWS + within, STEP_ROWS))
                yield
            self._coming = None
            if number < len(self._blocks):
                self._blocks[number] = block
            number += 1


class _Weights:
    """A vector split by each set of directions that is met."""

    def __init__(self, vector: NDArray[np.float32]) -> None:
        self._vector = vector
        self._split: dict[int, NDArray[np.float32]] = {}

    def of(self, block: _Block) -> NDArray[np.float32]:
        name = id(block.directions)
        if name not in self._split:
            self._split[name] = _split(self._vector[None], block.directions)[0]
        return self._split[name]


def _split(vectors: NDArray[np.float32], directions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns coordinates, the rest after `_COARSE` of them in its place among them, and the rest after all."""
    coordinates = vectors @ directions
    squares = coordinates * coordinates
    coarse = squares[:, :_COARSE].sum(axis=1)
    fine = coarse + squares[:, _COARSE:].sum(axis=1)
    return np.column_stack((coordinates[:, :_COARSE], _rest(coarse), coordinates[:, _COARSE:], _rest(fine)))


def _rest(squared: NDArray[np.float32]) -> NDArray[np.float32]:
    # The difference of two nearly equal numbers: what float32 may have lost is added, for the bound must hold.
    rest: NDArray[np.float32] = np.sqrt(np.maximum(np.float32(1.0) - squared, np.float32(0.0)) + np.float32(ROUNDING))
    return rest
