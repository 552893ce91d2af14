"""The stored questions nearest to a question, within one partition of the answer cache.

A small partition is scanned. In a large one, each row has an upper bound of its cosine from a fraction of its numbers
(`nearest_bounds`), and only rows whose bound reaches what is asked for, and the best found so far, are looked at whole:
what is left out is proven not to belong to the result. Only when more than 4,096 rows remain, for a low bar and a
question far from everything, are those of the highest bounds taken and the others left out without proof. Every call
returns after a bounded piece of work, with nothing to mend at a removal; additions do what is due in steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.nearest_bounds import ROUNDING, Bounds
from retrieval.answers.nearest_rows import Rows

_UNIT_TOLERANCE = 1e-3
_SAME_COSINE = 1e-6  # what the order of summing may change in float32
_FIRST_SCORED = 64  # rows, to learn what the best reach
_REFINED_SHARE = 0.03  # of the rows; looking at more of them whole costs more than bounding all of them better
# Low bars leave many rows: of 200 real questions over 100,000 entries, the nearest was among the 93 highest bounds.
_MOST_SCORED = 4_096
_KEY_OVERHEAD_BYTES = 160  # key object, its entries in list and dict, and its place, on CPython 3.11
_EMPTY_BYTES = 1_000


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored question and its cosine to the one asked, in -1 .. 1."""

    key: bytes
    similarity: float


class NearestQuestions:
    """Vectors of one partition by key. Not thread-safe."""

    def __init__(self, dim: int) -> None:
        if dim < 1:
            raise ValueError(f"dim must be at least 1, not {dim}")
        self._dim = dim
        self._keys: list[bytes] = []  # of each row
        self._places: dict[bytes, int] = {}
        self._key_bytes = 0
        self._rows = Rows(dim)
        self._bounds = Bounds(self._rows)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    @property
    def used_bytes(self) -> int:
        """Bytes of keys, vectors, bounds and their bookkeeping."""
        keys = self._key_bytes + _KEY_OVERHEAD_BYTES * len(self._keys)
        return _EMPTY_BYTES + keys + self._rows.used_bytes + self._bounds.used_bytes

    def add(self, key: bytes, vector: NDArray[np.float32]) -> None:
        """Stores a vector, [dim], unit length, in place of the key's earlier one; the next search sees it.

        Raises:
            ValueError: the vector has another shape, a value that is not finite, or a length off 1 by over 0.001.
        """
        unit = self._checked(vector)
        place = self._places.get(key)
        if place is None:
            self._append(key, unit)
        else:
            self._write(place, unit)
        self._bounds.step()

    def remove(self, key: bytes) -> bool:
        """Forgets a key and returns whether it was there."""
        place = self._places.pop(key, None)
        if place is None:
            return False
        last = self._keys.pop()
        if last != key:
            # The last row moves into the gap, so that rows stay without gaps.
            self._keys[place] = last
            self._places[last] = place
            self._write(place, self._rows[len(self._keys)])
        self._key_bytes -= len(key)
        self._rows.pop()
        self._bounds.popped()
        return True

    def search(self, vector: NDArray[np.float32], limit: int, min_similarity: float) -> list[Neighbour]:
        """Returns the `limit` nearest of at least that cosine, best first, equal ones by key.

        The result is exact unless over 4,096 rows might belong to it. Cosines are those of float32; one that falls
        short by rounding (1e-6) counts as reaching `min_similarity`.

        Raises:
            ValueError: the vector is none that could be added, `limit` is below 1, or `min_similarity` not in -1 .. 1.
        """
        unit = self._checked(vector)
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        if not -1.0 <= min_similarity <= 1.0:
            raise ValueError(f"min_similarity must be between -1 and 1, not {min_similarity}")
        if not self._keys:
            return []
        found = self._reaching(unit, limit, min_similarity - _SAME_COSINE)
        return sorted(found, key=lambda neighbour: (-neighbour.similarity, neighbour.key))[:limit]

    def _reaching(self, unit: NDArray[np.float32], limit: int, floor: float) -> list[Neighbour]:
        """Returns all rows that reach the floor and are no worse than the `limit` best, in no order."""
        bound = self._bounds.coarse(unit)
        places = _at_least(bound, floor)
        if len(places) > 2 * _FIRST_SCORED:
            floor = max(floor, self._promise(unit, limit, bound))
            places = _at_least(bound, floor)
        if len(places) > max(_FIRST_SCORED, _REFINED_SHARE * len(bound)):
            self._bounds.refine(unit, bound)
            floor = max(floor, self._promise(unit, limit, bound))
            places = _at_least(bound, floor)
        if len(places) > max(_MOST_SCORED, limit):
            best = np.argpartition(bound[places], -max(_MOST_SCORED, limit))[-max(_MOST_SCORED, limit) :]
            places = np.sort(places[best])
        cosines = self._rows.cosines(places, unit)
        if len(places) > limit:
            floor = max(floor, _ranked(cosines, limit))
        kept = cosines >= floor
        return [
            Neighbour(self._keys[place], max(-1.0, min(1.0, cosine)))
            for place, cosine in zip(places[kept].tolist(), cosines[kept].tolist(), strict=True)
        ]

    def _promise(self, unit: NDArray[np.float32], limit: int, bound: NDArray[np.float32]) -> float:
        """Returns a cosine that `limit` rows reach, -1 when it would take too many of them to tell.

        The row of the highest bound in each of a few stretches: the best are among them, or nearly as good ones.
        """
        length = len(bound) // _FIRST_SCORED
        if limit > _FIRST_SCORED or not length:
            return -1.0
        stretches = bound[: length * _FIRST_SCORED].reshape(_FIRST_SCORED, length)
        highest = stretches.argmax(axis=1) + np.arange(_FIRST_SCORED) * length
        return _ranked(self._rows.cosines(highest, unit), limit)

    def _append(self, key: bytes, unit: NDArray[np.float32]) -> None:
        self._places[key] = len(self._keys)
        self._keys.append(key)
        self._key_bytes += len(key)
        self._rows.append(unit)
        self._bounds.appended()

    def _write(self, place: int, unit: NDArray[np.float32]) -> None:
        self._rows[place] = unit
        self._bounds.changed(place)

    def _checked(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        if vector.shape != (self._dim,):
            raise ValueError(f"a vector must have shape ({self._dim},), not {vector.shape}")
        wide = vector.astype(np.float64)
        length = float(np.sqrt(wide @ wide))
        if not abs(length - 1.0) <= _UNIT_TOLERANCE:
            raise ValueError(
                f"a vector's values must be finite and its length 1 within {_UNIT_TOLERANCE}, not {length}"
            )
        unit: NDArray[np.float32] = (wide / length).astype(np.float32)
        return unit


def _at_least(bound: NDArray[np.float32], floor: float) -> NDArray[np.int64]:
    return np.flatnonzero(bound >= np.float32(floor - ROUNDING))


def _ranked(cosines: NDArray[np.float32], rank: int) -> float:
    return float(np.partition(cosines, len(cosines) - rank)[len(cosines) - rank])
