"""From a trained model to the folder that is served: ONNX, int8, and a check that int8 still orders pairs alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sentence_transformers.cross_encoder import CrossEncoder

from encoders.models import resolve
from encoders.quantizing import quantize
from encoders.sources import ModelSource
from rerank.cross_encoder import OnnxCrossEncoder
from rerank.training.errors import ExportDisagrees

LEAST_CORRELATION = 0.97
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_OPSET = 17


@dataclass(frozen=True, slots=True)
class Agreement:
    """How the int8 model's logits follow the full-precision ones."""

    pair_count: int
    correlation: float  # Pearson
    mean_difference: float  # absolute, of logits


def export(model: CrossEncoder, folder: Path, max_tokens: int) -> Path:
    """Writes the full-precision ONNX model, tokenizer and configuration to `folder`/full, the int8 one to /int8.

    Returns the int8 folder. Both are folders that `encoders.models.resolve` takes.
    """
    full, small = folder / "full", folder / "int8"
    for target in (full, small):
        target.mkdir(parents=True, exist_ok=True)
        _write_settings(model, target, max_tokens)
    _to_onnx(model, full / "model.onnx")
    quantize(full / "model.onnx", small / "model.onnx")
    return small


def compare(folder: Path, pairs: Sequence[tuple[str, str]]) -> Agreement:
    """Scores pairs by both models that `export` wrote.

    Raises:
        ExportDisagrees: their logits correlate less than `LEAST_CORRELATION`.
    """
    full, small = (OnnxCrossEncoder.open(resolve(ModelSource(str(folder / name)))) for name in ("full", "int8"))
    exact = np.array([full.score(query, [passage])[0] for query, passage in pairs], dtype=np.float64)
    found = np.array([small.score(query, [passage])[0] for query, passage in pairs], dtype=np.float64)
    correlation = float(np.corrcoef(exact, found)[0, 1])
    if not correlation >= LEAST_CORRELATION:
        raise ExportDisagrees(correlation, LEAST_CORRELATION)
    return Agreement(len(pairs), correlation, float(np.abs(exact - found).mean()))


def _write_settings(model: CrossEncoder, target: Path, max_tokens: int) -> None:
    model[0].model.config.to_json_file(str(target / "config.json"))
    model.tokenizer.backend_tokenizer.save(str(target / "tokenizer.json"))
    (target / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": max_tokens}), encoding="utf-8")


def _to_onnx(model: CrossEncoder, path: Path) -> None:
    classifier = model[0].model.to("cpu").eval()
    classifier.set_attn_implementation("eager")
    sample = {name: torch.ones((1, 8), dtype=torch.int64) for name in _INPUTS}
    varying = {0: "batch", 1: "sequence"}
    with torch.no_grad():
        torch.onnx.export(
            _Logits(classifier),
            tuple(sample.values()),
            str(path),
            input_names=list(_INPUTS),
            output_names=["logits"],
            dynamic_axes={**dict.fromkeys(_INPUTS, varying), "logits": {0: "batch"}},
            opset_version=_OPSET,
            dynamo=False,
        )


class _Logits(torch.nn.Module):  # type: ignore[misc]  # torch is not there to be checked
    """Gives the logits alone, by the positions of the inputs."""

    def __init__(self, classifier: torch.nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        return self.classifier(input_ids=ids, attention_mask=mask, token_type_ids=types).logits
