"""What a control has learned, as bytes that outlive the process: a format, a checksum, arrays.

Bytes that are damaged, of another format or of other features are refused whole: a control that starts from nothing
serves nothing that it should not, one that starts from half a state might.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"HRRK"
FORMAT = 1
_CHECKSUM_BYTES = 16
_HEADER_BYTES = len(_MAGIC) + 2 + _CHECKSUM_BYTES

Arrays = Mapping[str, NDArray[np.generic]]


def write_arrays(arrays: Arrays) -> bytes:
    """Returns the arrays as bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    content = buffer.getvalue()
    return _MAGIC + FORMAT.to_bytes(2, "little") + _checksum(content) + content


def read_arrays(stored: bytes, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[np.float64]]:
    """Reads what `write_arrays` wrote; a length of -1 in a shape stands for any.

    Raises:
        ValueError: the bytes are damaged or of another format, or hold other arrays than those.
    """
    content = stored[_HEADER_BYTES:]
    if stored[: len(_MAGIC)] != _MAGIC or stored[len(_MAGIC) + 2 : _HEADER_BYTES] != _checksum(content):
        raise ValueError("the bytes are damaged, or no stored risk control; start a new one")
    found = int.from_bytes(stored[len(_MAGIC) : len(_MAGIC) + 2], "little")
    if found != FORMAT:
        raise ValueError(f"the risk control is stored in format {found}, not {FORMAT}; start a new one")
    with np.load(io.BytesIO(content), allow_pickle=False) as read:
        arrays = {name: read[name] for name in read.files}
    for name, shape in shapes.items():
        if name not in arrays or not _fits(arrays[name].shape, shape):
            raise ValueError(f"the stored risk control has other features than this version ({name}); start a new one")
    return arrays


def pack_names(names: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Returns the names one after another, and where each ends."""
    return np.frombuffer(b"".join(names), dtype=np.uint8), np.cumsum([len(name) for name in names], dtype=np.int64)


def unpack_names(content: NDArray[np.generic], ends: NDArray[np.generic]) -> list[bytes]:
    """Returns what `pack_names` packed."""
    joined, stops = content.astype(np.uint8).tobytes(), [0, *ends.astype(np.int64).tolist()]
    return [joined[start:stop] for start, stop in pairwise(stops)]


def _fits(found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(found) == len(wanted) and all(want in (-1, length) for length, want in zip(found, wanted, strict=True))


def _checksum(content: bytes) -> bytes:
    return blake2b(content, digest_size=_CHECKSUM_BYTES).digest()
