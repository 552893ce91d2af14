"""`headrace models export`: torch weights to ONNX, optimized where that changes nothing, checked, recorded.

The file is compared with torch on its own inputs, at several lengths and in a padded batch; then all that serving makes
of it (tokenizer, pooling, prompts) is compared with references that sentence-transformers computed.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from encoders.catalog.checking import check_file, require_passed
from encoders.catalog.folders import fresh_record, kind_of, read_settings
from encoders.catalog.opening import OpenPairs, open_texts
from encoders.catalog.pulling import CARD, fetch_verified, matching
from encoders.catalog.record import ExportFacts, ModelRecord, write_record
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
from encoders.onnx import OnnxSession
from encoders.sources import SETTINGS_FILES

if TYPE_CHECKING:
    from encoders.export.torch_models import TorchModel

_LIBRARIES = ("torch", "sentence_transformers", "onnx")
_TOKENIZER_SOURCES = ("vocab.txt", "vocab.json", "merges.txt", "*.model", "special_tokens_map.json")
_WEIGHTS = (("*.safetensors", "*.safetensors.index.json"), ("pytorch_model.bin",))
_TOLERANCE = 1e-3  # of any number of the output, which are of the order of 1
_NAMES = ("onnx/model.onnx", "model.onnx")


def fetch_torch_weights(model: str, revision: str) -> Path:
    """Fetches a model's torch weights and settings from the hub; safetensors before anything else.

    Raises:
        ModelNotFound: the hub does not give them.
        ModelUnsupported: a file is damaged.
    """
    for weights in _WEIGHTS:
        wanted = (*SETTINGS_FILES, CARD, *_TOKENIZER_SOURCES, "*_Dense/*", *weights)
        folder = fetch_verified(model, revision, wanted)
        if matching(folder, weights):
            return folder
    raise ModelNotFound(model, "it has no torch weights; choose another model")


def export(source: Path, model: str, revision: str, target: Path, open_pairs: OpenPairs) -> ModelRecord:
    """Writes the ONNX form of the torch weights in `source` to `target`, which may be the same folder.

    Raises:
        ExtraMissing: torch is not installed.
        ModelNotFound, ModelUnsupported: the weights cannot be loaded or traced, or it is no model that can be served.
        ModelCheckFailed: the file computes something else than torch; nothing was written.
        ModelNotWritten: the folder cannot be written, or no space is left.
    """
    missing = next((name for name in _LIBRARIES if importlib.util.find_spec(name) is None), None)
    if missing:
        raise ExtraMissing("export", missing)
    from encoders.export.torch_models import OPSET, load  # noqa: PLC0415  needs the extra

    if kind_of(source) == "static":
        raise ModelUnsupported(model, "it is static, a table of vectors; it is served as it is, without an export")
    paired = kind_of(source) == "cross-encoder"
    loaded = load(source, model, paired=paired)
    with staged(target, model) as fresh:
        _copy_settings(source, fresh, model, paired=paired)
        name = next((name for name in _NAMES if (target / name).is_file()), _NAMES[-1])
        difference, optimized = _write_graph(loaded, fresh / name, model)
        _write_references(loaded, fresh, model, open_pairs)
        figures = check_file(fresh, model, "fp32", open_pairs)
        require_passed(model, "fp32", figures)
        dim = None if paired else open_texts(fresh, model, name).dim
        facts = ExportFacts(OPSET, optimized, difference, version("torch"), version("transformers"))
        record = replace(fresh_record(fresh, model, revision, dim), export=facts, checks={"fp32": figures})
        write_record(fresh, record)
    return record


def _copy_settings(source: Path, fresh: Path, model: str, *, paired: bool) -> None:
    from encoders.export.torch_models import save_fast_tokenizer  # noqa: PLC0415

    # The graph of a cross-encoder holds all of its steps; a bi-encoder's are done by whoever serves it.
    left_out = {"modules.json"} if paired else set()
    copy_into(source, fresh, [name for name in matching(source, (*SETTINGS_FILES, CARD)) if name not in left_out])
    if not (fresh / "tokenizer.json").is_file():
        save_fast_tokenizer(source, fresh / "tokenizer.json", model)
    config: Any = read_settings(fresh, "config.json")
    if paired and kind_of(fresh) == "cross-encoder" and isinstance(config, dict):
        # A head that is a module of its own is not named in the settings of the body.
        heads = [f"{str(name).removesuffix('Model')}ForSequenceClassification" for name in config["architectures"]]
        if not any(str(name).endswith("ForSequenceClassification") for name in config["architectures"]):
            (fresh / "config.json").write_text(json.dumps({**config, "architectures": heads}), encoding="utf-8")


def _write_graph(loaded: TorchModel, path: Path, model: str) -> tuple[float, bool]:
    """Writes the fused graph, or the plain one when the fused one differs; returns how far it is from torch."""
    from encoders.export.torch_models import trace  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    plain = path.with_name("plain.onnx")
    trace(loaded, plain, model)
    difference = _difference(loaded, plain, model)
    if difference > _TOLERANCE:
        raise ModelCheckFailed(
            model, f"its ONNX form is {difference:.2g} off what torch computes; choose another model"
        )
    fused = _fused_difference(loaded, plain, path, model)
    if fused is None or fused > _TOLERANCE:
        plain.replace(path)
        return difference, False
    plain.unlink()
    return fused, True


def _fused_difference(loaded: TorchModel, plain: Path, path: Path, model: str) -> float | None:
    from encoders.export.optimizing import optimize  # noqa: PLC0415

    try:
        optimize(plain, path, heads=loaded.heads, hidden_size=loaded.hidden_size)
        return _difference(loaded, path, model)
    except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, EncoderError):
        return None  # a graph that the optimizer does not know is served as it was traced


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


def _write_references(loaded: TorchModel, fresh: Path, model: str, open_pairs: OpenPairs) -> None:
    if loaded.output == "logits":
        write_pair_references(fresh, PairReferences(PAIRS, _single(loaded.references(PAIRS), model)))
    else:
        write_text_references(fresh, TextReferences(TEXTS, loaded.references(TEXTS)))


def _single(scores: NDArray[np.float32], model: str) -> NDArray[np.float64]:
    """Returns a logit a pair; of two classes, how much the second is ahead of the first."""
    columns = scores.reshape(len(scores), -1).astype(np.float64)
    if columns.shape[1] > 2:
        raise ModelUnsupported(
            model, f"it tells {columns.shape[1]} classes apart, not one score; choose a cross-encoder"
        )
    result: NDArray[np.float64] = columns[:, -1] - (columns[:, 0] if columns.shape[1] == 2 else 0.0)
    return result
