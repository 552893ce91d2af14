"""`headrace models export`: torch weights to ONNX, optimized where that changes nothing, checked, recorded.

The file is compared with torch on its own inputs, at several lengths and in a padded batch; then all that serving makes
of it (tokenizer, pooling, prompts) is compared with references that sentence-transformers computed.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from encoders.catalog.benching import interleaved
from encoders.catalog.checking import check_file
from encoders.catalog.folders import files_of, fresh_record, require_onnx_kind
from encoders.catalog.opening import OpenPairs, dim_of
from encoders.catalog.pulling import fetch_verified, matching
from encoders.catalog.record import CARD_FILE, ExportFacts, ModelRecord, write_record
from encoders.catalog.references import (
    PAIRS,
    TEXTS,
    PairReferences,
    TextReferences,
    write_pair_references,
    write_text_references,
)
from encoders.catalog.staging import copy_into, staged
from encoders.errors import EncoderError, ExtraMissing, ModelCheckFailed, ModelNotFound, ModelUnsupported
from encoders.kinds import ModelKind
from encoders.models import ModelFiles
from encoders.onnx import OnnxSession
from encoders.selfcheck import require_passed
from encoders.sources import SETTINGS_FILES

if TYPE_CHECKING:
    from encoders.export.torch_models import TorchModel

_LIBRARIES = ("torch", "sentence_transformers", "onnx")
_TOKENIZER_SOURCES = ("vocab.txt", "vocab.json", "merges.txt", "*.model", "special_tokens_map.json")
_STEPS = "[0-9]*_*/*"  # folders of steps that have weights of their own
_WEIGHTS = (("*.safetensors", "*.safetensors.index.json"), ("pytorch_model.bin",))
_TOLERANCE = 1e-3  # of any number of the output, which are of the order of 1
_WORTH = 0.95  # below this share of the plain graph's time the fused one is faster beyond doubt
_NAMES = ("onnx/model.onnx", "model.onnx")


def fetch_torch_weights(model: str, revision: str) -> Path:
    """Fetches a model's torch weights and settings from the hub; safetensors before anything else.

    Raises:
        ModelNotFound: the hub does not give them.
        ModelUnsupported: a file is damaged.
    """
    for weights in _WEIGHTS:
        wanted = (*SETTINGS_FILES, CARD_FILE, *_TOKENIZER_SOURCES, _STEPS, *weights)
        folder = fetch_verified(model, revision, wanted)
        if matching(folder, weights):
            return folder
    raise ModelNotFound(model, "it has no torch weights; choose another model")


def require_extra() -> None:
    """Looks for the libraries that an export needs, before anything is fetched for it.

    Raises:
        ExtraMissing: one is not installed.
    """
    missing = next((name for name in _LIBRARIES if importlib.util.find_spec(name) is None), None)
    if missing:
        raise ExtraMissing("export", missing)


def export(source: Path, model: str, revision: str, target: Path, open_pairs: OpenPairs) -> ModelRecord:
    """Writes the ONNX form of the torch weights in `source` to `target`, which may be the same folder.

    Raises:
        ExtraMissing: torch is not installed.
        ModelNotFound, ModelUnsupported: the weights cannot be loaded or traced, or it is no model that can be served.
        ModelCheckFailed: the file computes something else than torch; nothing was written.
        ModelNotWritten: the folder cannot be written, or no space is left.
    """
    require_extra()
    from encoders.export.torch_models import OPSET, load  # noqa: PLC0415  needs the extra

    paired = require_onnx_kind(source, model) is ModelKind.CROSS_ENCODER
    loaded = load(source, model, paired=paired)
    with staged(target, model) as fresh:
        _copy_settings(source, fresh, model)
        name = next((name for name in _NAMES if (target / name).is_file()), _NAMES[-1])
        difference, optimized = _write_graph(loaded, fresh / name, model)
        _write_references(loaded, fresh, files_of(fresh, model, name))
        figures = check_file(fresh, model, "fp32", open_pairs)
        require_passed(model, "fp32", figures)
        facts = ExportFacts(OPSET, optimized, difference, version("torch"), version("transformers"))
        record = replace(
            fresh_record(fresh, model, revision, dim_of(fresh, model, name)), export=facts, checks={"fp32": figures}
        )
        write_record(fresh, record)
    return record


def _copy_settings(source: Path, fresh: Path, model: str) -> None:
    from encoders.export.torch_models import save_fast_tokenizer  # noqa: PLC0415

    copy_into(source, fresh, matching(source, (*SETTINGS_FILES, CARD_FILE)))
    if not (fresh / "tokenizer.json").is_file():
        save_fast_tokenizer(source, fresh / "tokenizer.json", model)


def _write_graph(loaded: TorchModel, path: Path, model: str) -> tuple[float, bool]:
    """Writes the fused graph if that is right and faster, or the plain one; returns how far it is from torch."""
    from encoders.export.torch_models import trace  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    plain, fused = path.with_name("plain.onnx"), path.with_name("fused.onnx")
    trace(loaded, plain, model)
    difference = _difference(loaded, plain, model)
    if difference > _TOLERANCE:
        raise ModelCheckFailed(model, f"its ONNX form is {difference:.2g} off torch's results; choose another model")
    fused_difference = _fused_difference(loaded, plain, fused, model)
    optimized = fused_difference <= _TOLERANCE and _is_faster(loaded, fused, plain, model)
    (fused if optimized else plain).replace(path)
    (plain if optimized else fused).unlink(missing_ok=True)
    return (fused_difference if optimized else difference), optimized


def _fused_difference(loaded: TorchModel, plain: Path, fused: Path, model: str) -> float:
    from encoders.export.optimizing import optimize  # noqa: PLC0415

    try:
        optimize(plain, fused, heads=loaded.heads, hidden_size=loaded.hidden_size)
        return _difference(loaded, fused, model)
    except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, EncoderError):
        return math.inf  # a graph that the optimizer does not know is served as it was traced


def _is_faster(loaded: TorchModel, fused: Path, plain: Path, model: str) -> bool:
    # ONNX Runtime fuses as well when it opens a file, so that this often gains nothing, and sometimes less than that.
    sample = dict(zip(loaded.inputs, list(_samples(loaded))[-1], strict=True))
    sessions = {path: OnnxSession.open(path, model) for path in (fused, plain)}
    ms = interleaved({path: partial(session.run, sample, loaded.output) for path, session in sessions.items()})
    return ms[fused] < _WORTH * ms[plain]


def _difference(loaded: TorchModel, path: Path, model: str) -> float:
    session = OnnxSession.open(path, model)
    worst = 0.0
    for tensors in _samples(loaded):
        expected = loaded.compute(tensors)
        found = session.run(dict(zip(loaded.inputs, tensors, strict=True)), loaded.output)
        seen = np.ones(expected.shape[: expected.ndim - 1], dtype=bool)
        if loaded.output != "logits":
            seen = tensors[loaded.inputs.index("attention_mask")].astype(bool)  # what padding gives is nobody's
        worst = max(worst, float(np.abs(expected - found)[seen].max()))
    return worst


def _samples(loaded: TorchModel) -> Iterator[list[NDArray[np.int64]]]:
    draw = np.random.default_rng(5)
    for rows, wanted in ((1, 3), (1, 16), (2, 37), (1, 200)):
        length = min(wanted, loaded.longest)
        ids = draw.integers(0, loaded.vocabulary, size=(rows, length))
        mask = np.ones_like(ids)
        mask[1:, length // 2 :] = 0
        types = np.zeros_like(ids)
        yield [{"input_ids": ids, "attention_mask": mask, "token_type_ids": types}[name] for name in loaded.inputs]


def _write_references(loaded: TorchModel, fresh: Path, files: ModelFiles) -> None:
    if files.kind is ModelKind.CROSS_ENCODER:
        write_pair_references(fresh, PairReferences(PAIRS, _logits(loaded.references(PAIRS), files)))
    else:
        write_text_references(fresh, TextReferences(TEXTS, loaded.references(TEXTS)))


def _logits(scores: NDArray[np.float32], files: ModelFiles) -> NDArray[np.float64]:
    """Returns a logit a pair; of two classes, how much the relevant one is ahead of the other."""
    columns = scores.reshape(len(scores), -1).astype(np.float64)
    classes = columns.shape[1]
    if classes > 2:
        raise ModelUnsupported(files.model_id, f"it has {classes} classes, not one score; choose a cross-encoder")
    if classes == 1:
        return columns[:, 0]
    result: NDArray[np.float64] = columns[:, files.relevant_class] - columns[:, 1 - files.relevant_class]
    return result
