"""Fits a model's token projection to unlabelled passages: which tokens say something, and where their states vary.

Weights are inverse document frequencies. Directions are those of the principal component analysis of the token states,
each divided by a power of its variance, and rotated at random, so that all numbers of a token vector have one spread
and can be coded alike. Nothing is learned from questions: a projection that was trained on question pairs, from the
principal directions on, was worse than they are in the mean of six sets (64 dimensions, late interaction alone).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.cpu import one_blas_thread
from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelUnsupported
from encoders.late.codec import LevelCodec
from encoders.late.tokens import TokenProjection
from encoders.terms import STOP_WORDS
from encoders.types import TextKind, TokenizedText

_SEED = 0
_SILENT_CATEGORIES = frozenset("PSZC")  # punctuation, symbols, separators, control characters
_LEAST_VARIANCE = 1e-9
_LEAST_WEIGHT = 0.01  # of a token that every passage has: it counts little, but it is kept


@dataclass(frozen=True, slots=True)
class LateShape:
    """What a projection is to look like."""

    dim: int = 240
    bits: int = 2
    whitening: float = 0.25
    """The power of its variance that a direction is divided by: 0 leaves them as they are, 0.5 makes all alike."""


def fit_projection(encoder: OnnxDenseEncoder, passages: Sequence[str], shape: LateShape) -> TokenProjection:
    """Encodes the passages and returns the projection that fits them; some thousand passages are enough.

    Raises:
        ModelUnsupported: the model gives no token states, or fewer dimensions than asked for.
        ValueError: there are no passages, or the shape has no codec.
    """
    return fit_projections(encoder, passages, [shape])[0]


def fit_projections(
    encoder: OnnxDenseEncoder, passages: Sequence[str], shapes: Sequence[LateShape]
) -> list[TokenProjection]:
    """Does the same for several shapes, encoding the passages once.

    Raises:
        ModelUnsupported, ValueError: as `fit_projection`.
    """
    if not passages:
        raise ValueError("a projection needs passages to be fitted to; give a file that holds some")
    codecs = [LevelCodec(shape.dim, shape.bits) for shape in shapes]
    items = encoder.tokenize(passages, TextKind.PASSAGE)
    weights = _token_weights(encoder, items)
    with one_blas_thread():
        moments = _moments(encoder, items, weights, max(codec.dim for codec in codecs))
        directions = [moments.directions(shape) for shape in shapes]
    return [
        TokenProjection(projection, center, weights, codec)
        for (center, projection), codec in zip(directions, codecs, strict=True)
    ]


def _moments(
    encoder: OnnxDenseEncoder, items: Sequence[TokenizedText], weights: NDArray[np.float32], dim: int
) -> _Moments:
    moments = _Moments()
    for item in items:
        [(_, states)] = encoder.engine.vectors_and_states([item])
        if states is None or states.shape[1] < dim:
            raise ModelUnsupported(
                encoder.model_id, f"it gives no token states of {dim} dimensions or more; ask for fewer"
            )
        moments.add(states[weights[item.ids] > 0])
    return moments


class _Moments:
    """The mean and the covariance of token states of unit length, gathered passage by passage."""

    def __init__(self) -> None:
        self._count = 0
        self._sum: NDArray[np.float64] | float = 0.0
        self._squares: NDArray[np.float64] | float = 0.0

    def add(self, states: NDArray[np.float32]) -> None:
        """Takes states [tokens, states] into account."""
        unit = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), np.float32(_LEAST_VARIANCE))
        self._count += len(unit)
        self._sum = self._sum + unit.sum(axis=0, dtype=np.float64)
        self._squares = self._squares + (unit.T @ unit).astype(np.float64)

    def directions(self, shape: LateShape) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns the mean [states] and the projection [states, dim]."""
        mean = np.asarray(self._sum) / max(self._count, 1)
        covariance = np.asarray(self._squares) / max(self._count, 1) - np.outer(mean, mean)
        variances, directions = np.linalg.eigh(covariance)
        best = np.argsort(-variances)[: shape.dim]
        scale = np.maximum(variances[best], _LEAST_VARIANCE) ** -shape.whitening
        rotation, _ = np.linalg.qr(np.random.default_rng(_SEED).standard_normal((shape.dim, shape.dim)))
        projection = (directions[:, best] * (scale / scale.max())) @ rotation
        return mean.astype(np.float32), projection.astype(np.float32)


def _token_weights(encoder: OnnxDenseEncoder, items: Sequence[TokenizedText]) -> NDArray[np.float32]:
    """Returns float32 [vocabulary]: the inverse document frequency, at most 1, and 0 for tokens that say nothing."""
    tokens = encoder.tokenization.token_texts()
    counts = np.zeros(len(tokens))
    for item in items:
        counts[np.unique(item.ids)] += 1
    weights = np.log((len(items) + 1) / (counts + 0.5)) / np.log((len(items) + 1) / 0.5)
    spoken = np.array([_says_something(token) for token in tokens])
    result: NDArray[np.float32] = np.where(spoken, np.maximum(weights, _LEAST_WEIGHT), 0.0).astype(np.float32)
    return result


def _says_something(token: str) -> bool:
    """Whether a token, as text, is neither punctuation nor a stop word."""
    word = token.strip().removeprefix("##")
    silent = all(unicodedata.category(character)[0] in _SILENT_CATEGORIES for character in word)
    return not silent and token.strip().casefold() not in STOP_WORDS
