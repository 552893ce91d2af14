"""What `bench.nearest` compares, and the entries that it makes up from real questions."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.nearest import Neighbour

Vectors: TypeAlias = NDArray[np.float32]

_SEED = 20_261_201
_NEIGHBOURS = 8
_RESCORED = 256


class Way(Protocol):
    """What is compared."""

    def add(self, key: bytes, vector: Vectors) -> None:
        """Stores an entry."""
        ...

    def remove(self, key: bytes) -> bool:
        """Forgets an entry."""
        ...

    def search(self, vector: Vectors, limit: int, min_similarity: float) -> list[Neighbour]:
        """Returns the nearest, best first."""
        ...

    @property
    def used_bytes(self) -> int:
        """Bytes that are held."""
        ...


class Scan:
    """The product with all rows, in one array that is large enough from the start."""

    def __init__(self, dim: int, capacity: int) -> None:
        self._rows = np.zeros((capacity, dim), dtype=np.float32)
        self._keys: list[bytes] = []

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows."""
        return self._rows.nbytes

    def add(self, key: bytes, vector: Vectors) -> None:
        """Writes the next row."""
        self._rows[len(self._keys)] = vector
        self._keys.append(key)

    def remove(self, key: bytes) -> bool:
        """Drops the last key, whichever it is: the cheapest there could be."""
        return bool(self._keys.pop())

    def search(self, vector: Vectors, limit: int, min_similarity: float) -> list[Neighbour]:
        """Scores all rows."""
        return self._best(self._rows[: len(self._keys)] @ vector, np.arange(len(self._keys)), limit, min_similarity)

    def _best(self, cosines: Vectors, places: NDArray[np.int64], limit: int, least: float) -> list[Neighbour]:
        reached = np.flatnonzero(cosines >= least)
        best = reached[np.argsort(-cosines[reached], kind="stable")[:limit]]
        return [Neighbour(self._keys[places[one]], float(cosines[one])) for one in best]


class Signs(Scan):
    """The rows whose signs agree most, scored exactly."""

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        self._signs = np.zeros((dim // 64, capacity), dtype=np.uint64)

    @property
    def used_bytes(self) -> int:
        """Bytes of rows and signs."""
        return self._rows.nbytes + self._signs.nbytes

    def add(self, key: bytes, vector: Vectors) -> None:
        """Writes the next row and its signs."""
        self._signs[:, len(self._keys)] = np.packbits(vector > 0).view(np.uint64)
        super().add(key, vector)

    def search(self, vector: Vectors, limit: int, min_similarity: float) -> list[Neighbour]:
        """Counts differing signs of all rows and scores the best."""
        asked = np.packbits(vector > 0).view(np.uint64)
        differing = np.zeros(len(self._keys), dtype=np.uint16)
        for signs, one in zip(self._signs, asked, strict=True):
            differing += np.bitwise_count(signs[: len(differing)] ^ one)
        places = np.arange(len(differing))
        if len(differing) > _RESCORED:
            places = np.sort(np.argpartition(differing, _RESCORED)[:_RESCORED])
        return self._best(self._rows[places] @ vector, places, limit, min_similarity)


def entries_like(real: Vectors, count: int) -> Vectors:
    """Returns `count` unit vectors in random order: the real ones, then ones made up from them; [count, dim]."""
    random = np.random.default_rng(_SEED)
    further = max(0, count - len(real))
    one = random.integers(0, len(real), further)
    other = _near(real)[one, random.integers(0, _NEIGHBOURS, further)]
    share = random.uniform(0.2, 0.8, (further, 1)).astype(np.float32)
    moments = real.T @ real / len(real) + 1e-6 * np.eye(real.shape[1], dtype=np.float32)
    moved = random.standard_normal((further, real.shape[1]), dtype=np.float32) @ np.linalg.cholesky(moments).T
    made = real[one] * (1 - share) + real[other] * share + 0.5 * moved
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return np.asarray(random.permutation(np.concatenate((real[:count], made))), dtype=np.float32)


def _near(real: Vectors) -> NDArray[np.int64]:
    found = []
    for start in range(0, len(real), 1_000):
        cosines = real[start : start + 1_000] @ real.T
        found.append(np.argpartition(-cosines, _NEIGHBOURS, axis=1)[:, 1 : _NEIGHBOURS + 1])
    return np.concatenate(found)
