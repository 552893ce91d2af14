"""The dense bi-encoder: a text's token states, pooled into one vector of unit length.

One text a run, at its exact length, unless it was measured that batches of like lengths are faster and that a text's
vector stays the same in one (`encoders.curve`). A dynamically quantized model takes the range of its activations over
the whole input: in a batch a text's vector would change with its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from encoders.errors import ModelUnsupported, NonFiniteOutput
from encoders.inputs import inputs_of, run_in_pieces
from encoders.kinds import ModelKind, require_kind
from encoders.late.tokens import TokenProjection
from encoders.models import ModelFiles, Pooling
from encoders.onnx import OnnxSession, Tensor
from encoders.pieces import EXACT, PiecePolicy
from encoders.static import StaticEngine, open_static_tokenizer
from encoders.tokenizing import Tokenization
from encoders.types import TextKind, TokenizedText
from encoders.vector_engine import VectorEngine

_WITH_VECTORS = (ModelKind.BI_ENCODER, ModelKind.STATIC)
_POOLED = "sentence_embedding"
_LOGITS = "logits"
_TOKEN_STATES = ("last_hidden_state", "token_embeddings", "h")
_NOTHING = np.empty(0, dtype=np.float32)


class DenseEngine:
    """An open bi-encoder. Safe to call from several threads at once; computes on the calling thread alone."""

    def __init__(self, session: OnnxSession, files: ModelFiles) -> None:
        self.model_id = files.model_id
        self._session = session
        self._takes = inputs_of(session, files.model_id)
        self._output = _vector_output(session, files)
        self._pooling = files.pooling if len(self._output.shape) == 3 else None
        self.dim = self._output.shape[-1]
        self.policy = EXACT
        """How `run` cuts what it is given into runs of the session."""

    @classmethod
    def open(cls, files: ModelFiles) -> DenseEngine:
        """Opens the weights.

        Raises:
            ModelNotFound, ModelUnsupported: it cannot be opened, or is no bi-encoder.
        """
        return cls(OnnxSession.open(files.weights, files.model_id), files)

    def with_policy(self, policy: PiecePolicy) -> DenseEngine:
        """Returns the same engine, over the same session, that cuts by another policy."""
        other = copy(self)
        other.policy = policy
        return other

    def run(self, items: Sequence[TokenizedText]) -> list[NDArray[np.float32]]:
        """Returns a vector an item: float32 [dim], unit length.

        Raises:
            NonFiniteOutput: an item came out with NaN or Inf, or without any direction.
            EncodingFailed: the session failed on an item.
        """
        return [vector for vector, _ in self.vectors_and_states(items)]

    def vectors_and_states(
        self, items: Sequence[TokenizedText]
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32] | None]]:
        """Returns a vector [dim] and its token states [tokens, dim] an item; None for states when the graph pools.

        Raises:
            NonFiniteOutput, EncodingFailed: as `run`.
        """
        found: list[tuple[NDArray[np.float32], NDArray[np.float32] | None]] = [(_NOTHING, None)] * len(items)
        for position, output in run_in_pieces(self._session, self._output.name, self._takes, items, self.policy):
            found[position] = self._pooled(output, items[position].token_count)
        return found

    def _pooled(
        self, output: NDArray[np.float32], token_count: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        states = None if self._pooling is None else output[:token_count]
        vector = output if states is None or self._pooling is None else _POOLERS[self._pooling](states)
        norm = float(np.linalg.norm(vector))
        if not (np.isfinite(norm) and norm > 0.0):
            raise NonFiniteOutput(self.model_id)
        return (vector / np.float32(norm)).astype(np.float32, copy=False), states


class OnnxDenseEncoder:
    """The `DenseEncoder` of a model whose files were resolved: synchronous, for tools and tests."""

    def __init__(self, engine: VectorEngine, tokenization: Tokenization, files: ModelFiles) -> None:
        self.engine = engine
        self.projection = _projection(engine, tokenization, files)
        self.tokenization = tokenization
        self.prompts = files.prompts
        self.model_id = files.model_id
        self.revision = files.revision
        self.dim = engine.dim
        self.max_tokens = files.max_tokens

    @classmethod
    def open(cls, files: ModelFiles) -> OnnxDenseEncoder:
        """Opens weights and tokenizer.

        Raises:
            ModelNotFound, ModelUnsupported: one of them cannot be opened, or the model is no bi-encoder.
        """
        require_kind(files.model_id, files.kind, _WITH_VECTORS, ModelKind.BI_ENCODER)
        if files.kind is ModelKind.STATIC:
            tokenization = open_static_tokenizer(files)
            return cls(StaticEngine.open(files, tokenization.vocabulary_size), tokenization, files)
        tokenization = Tokenization.open(files.tokenizer, files.model_id, files.max_tokens)
        return cls(DenseEngine.open(files), tokenization, files)

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        """Adds the prompt of the kind, cuts at `max_tokens`."""
        return self.tokenization.texts(texts, self.prompts[kind])

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns float32 [n, dim], unit length. Texts are cut at `max_tokens`."""
        return self._encode(texts, TextKind.QUERY)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns float32 [n, dim], unit length. Texts are cut at `max_tokens`."""
        return self._encode(texts, TextKind.PASSAGE)

    def _encode(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        return np.stack(self.engine.run(self.tokenize(texts, kind)))


def _projection(engine: VectorEngine, tokenization: Tokenization, files: ModelFiles) -> TokenProjection | None:
    if files.late is None:
        return None
    return TokenProjection.load(files.late, files.model_id, engine.dim, tokenization.vocabulary_size)


def _vector_output(session: OnnxSession, files: ModelFiles) -> Tensor:
    outputs = {tensor.name: tensor for tensor in session.outputs}
    pooled = outputs.get(_POOLED)
    if pooled is not None and len(pooled.shape) == 2 and pooled.shape[-1] > 0:
        return pooled
    # "logits" of three dimensions say which word or which label comes at a token: no states, whatever their shape.
    others = [tensor for tensor in session.outputs if tensor.name != _LOGITS]
    states = [outputs[name] for name in _TOKEN_STATES if name in outputs] or others
    found = next((tensor for tensor in states if len(tensor.shape) == 3 and tensor.shape[-1] > 0), None)
    if found is None:
        raise ModelUnsupported(files.model_id, f"it gives {sorted(outputs)}, no token states; choose a bi-encoder")
    if files.pooling is None:
        raise ModelUnsupported(files.model_id, "no file says how to pool its token states; add 1_Pooling/config.json")
    return found


def _mean(states: NDArray[np.float32]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = states.mean(axis=0)
    return mean


def _first(states: NDArray[np.float32]) -> NDArray[np.float32]:
    first: NDArray[np.float32] = states[0]
    return first


def _last(states: NDArray[np.float32]) -> NDArray[np.float32]:
    last: NDArray[np.float32] = states[-1]
    return last


_POOLERS = {Pooling.MEAN: _mean, Pooling.CLS: _first, Pooling.LAST: _last}
