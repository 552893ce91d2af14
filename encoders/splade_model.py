"""The one module that touches fastembed: its SPLADE model, run on tokens that were made here.

    weight of a word = max over the text's tokens of ln(1 + relu(logit))        (Formal et al., 2021)

fastembed opens the model, runs it and takes that maximum. Left to itself it would cut long texts without saying so: it
is handed token ids that are counted and cut already, one text at a time at its exact length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from fastembed.sparse.splade_pp import SpladePP

from encoders.errors import EncodingFailed, ModelUnsupported, NonFiniteOutput
from encoders.models import ModelFiles
from encoders.onnx import translated
from encoders.types import SparseVector, TokenizedText

# A name that fastembed knows. The files come from the folder, and any SPLADE model is run in the same way.
_KNOWN_NAME = "prithivida/Splade_PP_en_v1"


class SpladeEngine:
    """An open SPLADE model. Safe to call from several threads at once; computes on the calling thread alone."""

    def __init__(self, model: SpladePP, model_id: str) -> None:
        self.model_id = model_id
        self._model = model

    @classmethod
    def open(cls, files: ModelFiles, vocabulary_size: int) -> SpladeEngine:
        """Opens the weights.

        Raises:
            ModelUnsupported: fastembed cannot open the model, or it gives no logit for each word at each token.
        """
        reason = f"fastembed cannot open {files.weights.name} or the tokenizer's settings; fetch its files again"
        with translated(ModelUnsupported(files.model_id, reason)):
            model = _TokenizedSplade(
                _KNOWN_NAME,
                cache_dir=str(files.folder),
                threads=1,
                providers=["CPUExecutionProvider"],
                lazy_load=True,
                specific_model_path=str(files.folder),
            )
            file = files.weights.relative_to(files.folder).as_posix()
            model.model_description = replace(model.model_description, model_file=file)
            model.load_onnx_model()
            shape = list(model.model.get_outputs()[0].shape) if model.model is not None else []
        if len(shape) != 3 or (isinstance(shape[2], int) and shape[2] < vocabulary_size):
            raise ModelUnsupported(files.model_id, f"it gives {shape}, no logit a word; choose a SPLADE model")
        return cls(model, files.model_id)

    def run(self, items: Sequence[TokenizedText]) -> list[SparseVector]:
        """Returns a vector an item; one that calls up no word is empty.

        Raises:
            NonFiniteOutput: an item came out with NaN or Inf.
            EncodingFailed: the session failed on an item.
        """
        return [self._vector(item) for item in items]

    def _vector(self, item: TokenizedText) -> SparseVector:
        with translated(EncodingFailed(self.model_id)):
            # What it is given goes to `tokenize` as it is.
            (found,) = self._model.embed([item], batch_size=1)  # type: ignore[list-item]
        values = found.values.astype(np.float32)
        if not np.isfinite(values).all():
            raise NonFiniteOutput(self.model_id)
        return SparseVector(found.indices.astype(np.uint32), values)


class _TokenizedSplade(SpladePP):
    def tokenize(self, documents: Sequence[Any], **kwargs: Any) -> Any:
        del kwargs
        return [_Encoded(item.ids, np.ones_like(item.ids)) for item in documents]


@dataclass(frozen=True, slots=True)
class _Encoded:
    ids: Any  # int64 [tokens]
    attention_mask: Any  # int64 [tokens]
