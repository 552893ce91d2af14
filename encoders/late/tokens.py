"""A model's way from token states to token vectors: which tokens count, how much, and in which directions.

Kept beside the model's weights as `late.npz` and made by `encoders.late.fit` from unlabelled passages:

- `token_weights` float16 [vocabulary]: how much a token counts in a question, an IDF; tokens with weight 0 (special
  ones, punctuation, stop words) are left out of questions and passages alike.
- `center` float32 [states]: the mean of token states of unit length, which is subtracted first.
- `projection` float16 [states, dim]: their principal directions, partly whitened, then a rotation.
- `bits`: of a dimension's code.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from encoders.errors import ModelUnsupported
from encoders.late.codec import LevelCodec
from encoders.types import TokenizedText

LATE_FILE = "late.npz"


@dataclass(frozen=True, slots=True)
class TokenProjection:
    """Token states to token vectors and codes."""

    projection: NDArray[np.float32]  # [states, dim]
    center: NDArray[np.float32]  # [states]
    token_weights: NDArray[np.float32]  # [vocabulary], at least 0
    codec: LevelCodec

    @classmethod
    def load(cls, path: Path, model: str, state_dim: int, vocabulary_size: int) -> TokenProjection:
        """Reads what `save` wrote, for a model with states of so many numbers and so many tokens.

        Raises:
            ModelUnsupported: the file is damaged, or belongs to another model.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                projection = stored["projection"].astype(np.float32)
                center, weights = stored["center"].astype(np.float32), stored["token_weights"].astype(np.float32)
                codec = LevelCodec(projection.shape[1], int(stored["bits"]))
        except (OSError, ValueError, KeyError, IndexError, EOFError, BadZipFile, zlib.error) as cause:
            raise ModelUnsupported(model, f"{path.name} cannot be read; restore the file or remove it") from cause
        finite = all(np.isfinite(array).all() for array in (projection, center, weights))
        fits = (len(projection), center.shape, weights.shape) == (state_dim, (state_dim,), (vocabulary_size,))
        if not (finite and fits):
            raise ModelUnsupported(model, f"{path.name} belongs to another model; fit it again or remove it")
        return cls(projection, center, weights, codec)

    def save(self, path: Path) -> None:
        """Writes one file."""
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                projection=self.projection.astype(np.float16),
                center=self.center,
                token_weights=self.token_weights.astype(np.float16),
                bits=np.int64(self.codec.bits),
            )

    def query_vectors(self, item: TokenizedText, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns float32 [kept tokens, dim] of states [tokens, states]: each as long as its share of the weights."""
        weights = self.token_weights[item.ids]
        kept = np.flatnonzero(weights > 0)
        shares = weights[kept] / max(float(weights[kept].sum()), 1e-9)
        vectors: NDArray[np.float32] = self._project(states[kept]) * shares[:, np.newaxis]
        return vectors

    def passage_codes(self, item: TokenizedText, states: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Returns uint8 [distinct kept tokens, code_bytes] of states [tokens, states], in the order of the tokens' ids.

        A token that occurs more than once has one vector, the direction of their sum: a third fewer codes, at no cost
        in quality that could be measured.
        """
        kept = np.flatnonzero(self.token_weights[item.ids] > 0)
        if not len(kept):
            return np.empty((0, self.codec.code_bytes), dtype=np.uint8)
        ids = item.ids[kept]
        order = np.argsort(ids, kind="stable")
        firsts = np.flatnonzero(np.diff(ids[order], prepend=-1))
        return self.codec.encode(_unit(np.add.reduceat(self._project(states[kept[order]]), firsts, axis=0)))

    def _project(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        return _unit((_unit(states) - self.center) @ self.projection)


def _unit(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9))
    unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32, copy=False)
    return unit
