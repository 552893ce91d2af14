"""The one module that touches torch: loading weights, tracing them into an ONNX file, and what they compute.

Attention is taken in its plain form: others are traced into operators that ONNX Runtime does not have, or for one
length only. References come from sentence-transformers' own calls, tokenizer and pooling included, so that they also
find a difference in what we make of the model's files.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from encoders.errors import ModelUnsupported

OPSET = 17
_PLAIN = {"attn_implementation": "eager", "dtype": torch.float32}
_FOREIGN: tuple[type[Exception], ...] = (
    RuntimeError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    AssertionError,
    ImportError,
)
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Protobuf ends at 2 GiB; larger models need their weights beside the file.
_LARGEST_BYTES = 1_900_000_000


@dataclass(frozen=True, slots=True)
class TorchModel:
    """Loaded weights: the traced part of the model, and the names of what goes in and comes out."""

    module: Any  # torch.nn.Module over the inputs, in order
    inputs: tuple[str, ...]
    output: str  # `last_hidden_state` [batch, sequence, dim] or `logits` [batch, classes]
    vocabulary: int
    longest: int  # tokens
    heads: int
    hidden_size: int
    references: Callable[[Sequence[Any]], NDArray[np.float32]]  # vectors of texts, or the raw scores of pairs

    def compute(self, tensors: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Computes what the file must compute."""
        with torch.no_grad():
            result: NDArray[np.float32] = self.module(*(torch.from_numpy(tensor) for tensor in tensors)).numpy()
        return result


def load(folder: Path, model: str, *, paired: bool) -> TorchModel:
    """Loads the weights of a folder, as a cross-encoder if `paired`; code that comes with a model is never run.

    Raises:
        ModelUnsupported: they cannot be loaded, or the model is too large for one file.
    """
    opened: Any = CrossEncoder if paired else SentenceTransformer
    disable_progress_bar()
    reason = "its torch weights cannot be loaded; give a folder with config.json and safetensors"
    with _quiet(), _translated(model, reason, (OSError, SafetensorError)):
        whole = opened(str(folder), device="cpu", local_files_only=True, model_kwargs=dict(_PLAIN)).eval()
        inner = whole[0].auto_model
        config = inner.config
        made = TorchModel(
            module=(_Logits(whole) if paired else _TokenStates(inner)).eval(),
            inputs=_inputs(whole.tokenizer, inner),
            output="logits" if paired else "last_hidden_state",
            vocabulary=config.vocab_size,
            longest=config.max_position_embeddings,
            heads=config.num_attention_heads,
            hidden_size=config.hidden_size,
            references=_scores_of(whole) if paired else _vectors_of(whole),
        )
    if sum(weight.nbytes for weight in whole.parameters()) > _LARGEST_BYTES:
        raise ModelUnsupported(model, "its weights are larger than one ONNX file can hold; choose a smaller model")
    return made


def trace(loaded: TorchModel, target: Path, model: str) -> None:
    """Writes the ONNX file: any batch, any length.

    Raises:
        ModelUnsupported: the model does something that cannot be traced.
        OSError: the file cannot be written.
    """
    sample = torch.arange(3, 19).reshape(2, 8) % loaded.vocabulary
    tensors = {"input_ids": sample, "attention_mask": torch.ones_like(sample)}
    tensors["attention_mask"][1, 5:] = 0
    given = tuple(tensors.get(name, torch.zeros_like(sample)) for name in loaded.inputs)
    lengths = {0: "batch", 1: "sequence"}
    outputs = {loaded.output: {0: "batch"} if loaded.output == "logits" else lengths}
    with _quiet(), _translated(model, "torch cannot trace it into ONNX; choose another model"):
        torch.onnx.export(
            loaded.module,
            given,
            str(target),
            input_names=list(loaded.inputs),
            output_names=[loaded.output],
            dynamic_axes={**dict.fromkeys(loaded.inputs, lengths), **outputs},
            opset_version=OPSET,
            dynamo=False,
        )


def save_fast_tokenizer(folder: Path, target: Path, model: str) -> None:
    """Writes `tokenizer.json` for a folder that has another form of it only.

    Raises:
        ModelUnsupported: there is no fast form of its tokenizer.
    """
    with _quiet(), _translated(model, "its tokenizer has no fast form; choose another model", (OSError,)):
        AutoTokenizer.from_pretrained(str(folder), local_files_only=True).backend_tokenizer.save(str(target))


class _TokenStates(torch.nn.Module):  # type: ignore[misc]  # torch is not there to be checked
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *tensors: Any) -> Any:
        return self.inner(**dict(zip(_INPUTS, tensors, strict=False))).last_hidden_state


class _Logits(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, *tensors: Any) -> Any:
        return self.whole(dict(zip(_INPUTS, tensors, strict=False)))["scores"]


def _inputs(tokenizer: Any, inner: Any) -> tuple[str, ...]:
    taken = inspect.signature(inner.forward).parameters
    return tuple(name for name in _INPUTS if name in tokenizer.model_input_names and name in taken)


def _vectors_of(whole: Any) -> Callable[[Sequence[Any]], NDArray[np.float32]]:
    def vectors(texts: Sequence[Any]) -> NDArray[np.float32]:
        found = whole.encode(list(texts), batch_size=1, prompt="", normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)

    return vectors


def _scores_of(whole: Any) -> Callable[[Sequence[Any]], NDArray[np.float32]]:
    def scores(pairs: Sequence[Any]) -> NDArray[np.float32]:
        identity = torch.nn.Identity()
        found = whole.predict(list(pairs), batch_size=1, activation_fn=identity, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)

    return scores


@contextmanager
def _quiet() -> Iterator[None]:
    # Tracing warns of every branch that it sees, and its exporter of its successor, which needs one more package.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _translated(model: str, reason: str, also: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    try:
        yield
    except _FOREIGN + also as cause:
        raise ModelUnsupported(model, reason) from cause
