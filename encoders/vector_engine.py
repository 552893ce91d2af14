"""What every source of vectors has in common, a bi-encoder and static embeddings alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from encoders.types import TokenizedText


class VectorEngine(Protocol):
    """Makes vectors of token ids. Safe to call from several threads at once; computes on the calling thread alone."""

    @property
    def model_id(self) -> str:
        """The model's id or folder name."""
        ...

    @property
    def dim(self) -> int:
        """The numbers in a vector."""
        ...

    def run(self, items: Sequence[TokenizedText]) -> list[NDArray[np.float32]]:
        """Returns a vector an item: float32 [dim], unit length.

        Raises:
            NonFiniteOutput, EncodingFailed: an item has no vector.
        """
        ...

    def vectors_and_states(
        self, items: Sequence[TokenizedText]
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32] | None]]:
        """Returns a vector [dim] and its token states [tokens, dim] an item; None for an engine that gives no states.

        Raises:
            NonFiniteOutput, EncodingFailed: as `run`.
        """
        ...
