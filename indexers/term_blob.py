"""Term counts as bytes, little-endian: length in words, then the terms, then their counts."""

from __future__ import annotations

import struct

import numpy as np

from encoders.types import TermCounts

_HEAD = struct.Struct("<II")


def pack_terms(terms: TermCounts) -> bytes:
    """Writes term counts."""
    head = _HEAD.pack(terms.length, len(terms.terms))
    return head + terms.terms.astype("<u4").tobytes() + terms.counts.astype("<u2").tobytes()


def unpack_terms(blob: bytes) -> TermCounts:
    """Reads what `pack_terms` wrote, without copying."""
    length, count = _HEAD.unpack_from(blob)
    return TermCounts(
        terms=np.frombuffer(blob, dtype="<u4", count=count, offset=_HEAD.size),
        counts=np.frombuffer(blob, dtype="<u2", count=count, offset=_HEAD.size + 4 * count),
        length=length,
    )
