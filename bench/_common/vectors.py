"""Vectors kept between runs, so that trying another weight takes seconds.

Embedding the sets is most of the time of a quality run and never changes while the model does not. A store belongs to
one model revision and holds vectors by the hash of the text and of what the text was to the model. Two files are only
ever appended to under a lock, vectors first, so that a run that was killed leaves at most vectors without a key, which
the next writer cuts off.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoders.types import TextKind

DEFAULT_FOLDER = Path(".cache/bench")
_KEY_BYTES = 16


class VectorStore:
    """The vectors of one model revision, on disk, and in memory from the first use on.

    Several processes may append at the same time.
    """

    def __init__(self, folder: Path, revision: str, dim: int) -> None:
        self._folder = folder / revision[:16]
        self._dim = dim
        self._loaded: dict[bytes, NDArray[np.float32]] | None = None

    def __len__(self) -> int:
        return len(self._vectors)

    def get(self, text: str, kind: TextKind) -> NDArray[np.float32] | None:
        """Returns the vector [dim] of a text; None when it was never stored."""
        return self._vectors.get(_key(text, kind))

    def put(self, texts: Sequence[str], kind: TextKind, vectors: NDArray[np.float32]) -> None:
        """Stores the vectors [n, dim] of new texts, on disk before it returns."""
        keys = [_key(text, kind) for text in texts]
        self._vectors.update(zip(keys, vectors, strict=True))
        with self._locked():
            whole = self._cut_to_whole()
            _append(self._vectors_file, whole * 4 * self._dim, vectors.astype("<f4").tobytes())
            _append(self._keys_file, whole * _KEY_BYTES, b"".join(keys))

    @property
    def _vectors(self) -> dict[bytes, NDArray[np.float32]]:
        if self._loaded is None:
            with self._locked():
                self._loaded = self._load()
        return self._loaded

    @property
    def _keys_file(self) -> Path:
        return self._folder / "keys.bin"

    @property
    def _vectors_file(self) -> Path:
        return self._folder / "vectors.f32"

    def _cut_to_whole(self) -> int:
        """Returns how many entries are complete in both files."""
        return min(_size(self._keys_file) // _KEY_BYTES, _size(self._vectors_file) // (4 * self._dim))

    def _load(self) -> dict[bytes, NDArray[np.float32]]:
        count = self._cut_to_whole()
        if not count:
            return {}
        keys = self._keys_file.read_bytes()
        stored = np.fromfile(self._vectors_file, dtype="<f4", count=count * self._dim).reshape(count, self._dim)
        return {keys[row * _KEY_BYTES : (row + 1) * _KEY_BYTES]: stored[row] for row in range(count)}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _key(text: str, kind: TextKind) -> bytes:
    return blake2b(f"{kind.value}\0{text}".encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _append(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b" if path.exists() else "wb") as file:
        file.seek(at)
        file.truncate()
        file.write(content)
