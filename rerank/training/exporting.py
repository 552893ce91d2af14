"""From trained weights to the folder that is served: ONNX, int8, both checked against the trained model.

The steps are those of `headrace models export` and `headrace models quantize`, which refuse a file that computes
something else than the weights it was made of.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from encoders.catalog.quantized import quantize_folder
from encoders.catalog.recording import check_recorded
from encoders.catalog.references import REFERENCE_FILE
from encoders.export.exporting import export as export_weights
from rerank.cross_encoder import OnnxCrossEncoder

_INT8_FILE = "model_int8.onnx"
_KEPT = ("config.json", "tokenizer.json", "tokenizer_config.json", REFERENCE_FILE)


@dataclass(frozen=True, slots=True)
class Exported:
    """A model that can be served, and how its int8 logits follow the full-precision ones."""

    full: Path  # a folder with both files
    served: Path  # a folder with the int8 file alone, under the usual name
    pearson: float
    rank_agreement: float  # Kendall's tau


def export(trained: Path, target: Path) -> Exported:
    """Writes both folders below `target`, records included; `trained` is what the trainer saved.

    Raises:
        ModelError: the weights cannot be exported, or a file disagrees with them.
    """
    full, served = target / "full", target / "served"
    export_weights(trained, trained.name, "", full, OnnxCrossEncoder.open)
    quantize_folder(full, trained.name, OnnxCrossEncoder.open)
    served.mkdir(parents=True, exist_ok=True)
    shutil.copy2(full / _INT8_FILE, served / "model.onnx")
    for name in _KEPT:
        shutil.copy2(full / name, served / name)
    figures = check_recorded(served, trained.name, OnnxCrossEncoder.open, trusting=True)["int8"]
    return Exported(full, served, figures.pearson or 0.0, figures.rank_agreement)
