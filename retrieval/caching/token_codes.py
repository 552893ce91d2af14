"""Codes of token vectors by passage text, for collections that do not store them: computed once, kept while used."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrieval.caching.tiered import Tiered

_OBJECT_BYTES = 120

TokenCodes: TypeAlias = Tiered[NDArray[np.uint8]]  # [tokens, code_bytes]


def size_of(codes: NDArray[np.uint8]) -> int:
    """Returns the bytes that the codes take."""
    return _OBJECT_BYTES + codes.nbytes
