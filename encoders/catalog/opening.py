"""Opening a model of a folder as what it is, to run it: texts through a bi-encoder, pairs through a cross-encoder.

How pairs are scored is the business of the package above this one, so whoever calls hands the opener in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from encoders.catalog.folders import files_of, kind_in
from encoders.dense import OnnxDenseEncoder
from encoders.errors import EncodingFailed, ModelUnsupported, NonFiniteOutput
from encoders.kinds import ModelKind
from encoders.models import ModelFiles
from encoders.tokenizing import Tokenization
from encoders.types import Engine


class PairModel(Protocol):
    """An open cross-encoder: its tokenizer, and an engine that gives a logit a pair."""

    @property
    def engine(self) -> Engine[float]:
        """What computes."""
        ...

    @property
    def tokenization(self) -> Tokenization:
        """What makes tokens."""
        ...


OpenPairs: TypeAlias = Callable[[ModelFiles], PairModel]


def open_texts(folder: Path, model: str, file: str) -> OnnxDenseEncoder:
    """Opens an ONNX file of a folder as a bi-encoder.

    Raises:
        ModelNotFound, ModelUnsupported: it cannot be opened, or is no bi-encoder.
    """
    return OnnxDenseEncoder.open(files_of(folder, model, file))


def open_pairs_of(folder: Path, model: str, file: str, open_pairs: OpenPairs) -> PairModel:
    """Opens an ONNX file of a folder as a cross-encoder.

    Raises:
        ModelNotFound, ModelUnsupported: it cannot be opened, or is no cross-encoder.
    """
    return open_pairs(files_of(folder, model, file))


def dim_of(folder: Path, model: str, file: str) -> int | None:
    """Returns the numbers in a vector; None for a model that makes none.

    Raises:
        ModelNotFound, ModelUnsupported: it cannot be opened.
    """
    return None if kind_in(folder, model) is ModelKind.CROSS_ENCODER else open_texts(folder, model, file).dim


def vectors_of(encoder: OnnxDenseEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Encodes texts without a prompt: [n, dim], unit length.

    Raises:
        ModelUnsupported: the model fails on plain text.
    """
    try:
        return np.stack(encoder.engine.run(encoder.tokenization.texts(texts)))
    except (NonFiniteOutput, EncodingFailed) as cause:
        raise _broken(encoder.model_id) from cause


def logits_of(model: PairModel, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """Scores pairs: [n], in their order.

    Raises:
        ModelUnsupported: the model fails on plain text.
    """
    items = [
        item
        for query, same in groupby(pairs, key=lambda pair: pair[0])
        for item in model.tokenization.pairs(query, [passage for _, passage in same])
    ]
    try:
        return np.array(model.engine.run(items), dtype=np.float64)
    except (NonFiniteOutput, EncodingFailed) as cause:
        raise _broken(model.engine.model_id) from cause


def _broken(model: str) -> ModelUnsupported:
    return ModelUnsupported(model, "it fails on plain text; export it again")
