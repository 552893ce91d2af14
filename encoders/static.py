"""Static embeddings (model2vec and StaticEmbedding): a text's vector is the mean of one stored vector a token.

No network runs, so a vector costs microseconds, most of them for tokens: a first stage that is nearly free, at the
price of quality, since no word sees its neighbours. It goes through the scheduler like any encoder: a hand-over costs
more than the work, and buys deadlines, bounds and isolation without a path of its own.

    vector = sum_i weights[t_i] * embeddings[mapping[t_i]], scaled to unit length

`weights` and `mapping` are only there in models with a reduced vocabulary. Unknown tokens are left out and no special
ones added, as model2vec does. A text without any known token would have no vector, and one such chunk would cost its
document the index: it gets the mean direction of the whole vocabulary, which says as little as the text did.

The one module that touches safetensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from encoders.errors import ModelUnsupported, NonFiniteOutput
from encoders.models import ModelFiles
from encoders.tokenizing import Tokenization
from encoders.types import TokenizedText

_MATRICES = ("embeddings", "embedding.weight")
_BLOCK_ROWS = 16_384


class StaticEngine:
    """Open static embeddings. Safe to call from several threads at once; computes on the calling thread alone."""

    def __init__(
        self,
        model_id: str,
        embeddings: NDArray[Any],  # [rows, dim], any number type
        weights: NDArray[np.float32] | None,  # [vocabulary]
        mapping: NDArray[np.int64] | None,  # [vocabulary], rows
    ) -> None:
        self.model_id = model_id
        self.dim = int(embeddings.shape[1])
        self._embeddings = embeddings
        self._weights = weights
        self._mapping = mapping
        self._middle = _middle(embeddings, model_id)

    @classmethod
    def open(cls, files: ModelFiles, vocabulary_size: int) -> StaticEngine:
        """Reads the vectors of a tokenizer's vocabulary into memory.

        Raises:
            ModelUnsupported: the file is damaged, or has no vector for some token.
        """
        tensors = _read(files.weights, files.model_id)
        embeddings = next((tensors[name] for name in _MATRICES if name in tensors), None)
        if embeddings is None or embeddings.ndim != 2 or 0 in embeddings.shape:
            raise _unusable(files, f"it holds {sorted(tensors)} and no embeddings")
        weights, mapping = tensors.get("weights"), tensors.get("mapping")
        covered = len(embeddings) if mapping is None else len(mapping)
        if covered < vocabulary_size:
            raise _unusable(files, f"it has vectors for {covered} tokens, the tokenizer has {vocabulary_size}")
        if weights is not None and weights.shape != (covered,):
            raise _unusable(files, f"it has weights for {len(weights)} tokens and vectors for {covered}")
        if mapping is not None and not (mapping.min() >= 0 and mapping.max() < len(embeddings)):
            raise _unusable(files, "its mapping leads out of its embeddings")
        return cls(
            files.model_id,
            embeddings,
            None if weights is None else weights.astype(np.float32),
            None if mapping is None else mapping.astype(np.int64),
        )

    def run(self, items: Sequence[TokenizedText]) -> list[NDArray[np.float32]]:
        """Returns a vector an item: float32 [dim], unit length.

        Raises:
            NonFiniteOutput: an item came out with NaN or Inf, or without any direction.
        """
        return [self._vector(item.ids) for item in items]

    def vectors_and_states(
        self, items: Sequence[TokenizedText]
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32] | None]]:
        """Returns a vector [dim] an item, and no token states: a token's vector knows nothing of the text.

        Raises:
            NonFiniteOutput: as `run`.
        """
        return [(vector, None) for vector in self.run(items)]

    def _vector(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        if not len(ids):
            return self._middle.copy()
        rows = self._embeddings[ids if self._mapping is None else self._mapping[ids]].astype(np.float32, copy=False)
        total = rows.sum(axis=0) if self._weights is None else self._weights[ids] @ rows
        return _direction(total, self.model_id)


def open_static_tokenizer(files: ModelFiles) -> Tokenization:
    """Opens the tokenizer as static embeddings take it: without special and unknown tokens.

    Raises:
        ModelNotFound, ModelUnsupported: it cannot be opened.
    """
    return Tokenization.open(files.tokenizer, files.model_id, files.max_tokens, bare=True)


def _read(path: Path, model_id: str) -> Mapping[str, NDArray[Any]]:
    try:
        tensors: dict[str, NDArray[Any]] = load_file(path)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as cause:
        raise ModelUnsupported(model_id, f"{path.name} cannot be read; fetch the model's files again") from cause
    return tensors


def _unusable(files: ModelFiles, what: str) -> ModelUnsupported:
    return ModelUnsupported(files.model_id, f"{files.weights.name}: {what}; choose a model2vec model")


def _middle(embeddings: NDArray[Any], model_id: str) -> NDArray[np.float32]:
    # In blocks: a copy of a whole matrix of small numbers in another type can take a gigabyte.
    total = np.zeros(embeddings.shape[1], dtype=np.float64)
    for start in range(0, len(embeddings), _BLOCK_ROWS):
        total += embeddings[start : start + _BLOCK_ROWS].sum(axis=0, dtype=np.float64)
    try:
        return _direction(total.astype(np.float32), model_id)
    except NonFiniteOutput as cause:
        raise ModelUnsupported(model_id, "its embeddings together have no direction; fetch its files again") from cause


def _direction(vector: NDArray[np.float32], model_id: str) -> NDArray[np.float32]:
    norm = float(np.linalg.norm(vector))
    if not (np.isfinite(norm) and norm > 0.0):
        raise NonFiniteOutput(model_id)
    unit: NDArray[np.float32] = (vector / np.float32(norm)).astype(np.float32, copy=False)
    return unit
