"""fastembed with its defaults, on the same int8 file, through its own way to add a model."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench._common.peers.arms import Arm, ArmMissing, blocking, versions
from bench._common.peers.folders import ONNX_FILE, PeerFolder

NAME = "fastembed"
_PACKAGES = ("fastembed", "onnxruntime")


def open_pairs(folder: PeerFolder) -> Arm:
    """Opens `TextCrossEncoder`.

    Raises:
        ArmMissing: fastembed is not installed.
    """
    library = _module("fastembed.rerank.cross_encoder").TextCrossEncoder
    library.add_custom_model(_name(folder), sources=_nowhere(), model_file=ONNX_FILE)
    model = library(_name(folder), specific_model_path=str(folder.path))
    return Arm(NAME, "int8", versions(*_PACKAGES), blocking(lambda task: list(model.rerank(task.query, task.passages))))


def open_texts(folder: PeerFolder, dim: int) -> Arm:
    """Opens `TextEmbedding`, which pools by the mean and normalizes.

    Raises:
        ArmMissing: fastembed is not installed.
    """
    library = _module("fastembed").TextEmbedding
    pooling = _module("fastembed.common.model_description").PoolingType.MEAN
    library.add_custom_model(
        _name(folder), pooling=pooling, normalization=True, sources=_nowhere(), dim=dim, model_file=ONNX_FILE
    )
    model = library(_name(folder), specific_model_path=str(folder.path))
    return Arm(NAME, "int8", versions(*_PACKAGES), blocking(lambda task: list(model.embed(task.passages))))


def _name(folder: PeerFolder) -> str:
    # Its registry lives as long as the process and takes a name once.
    return f"headrace/{folder.path.parent.name}-{folder.path.name}"


def _nowhere() -> Any:
    return _module("fastembed.common.model_description").ModelSource(hf="headrace/none")


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as cause:
        raise ArmMissing(NAME, f"{cause.name} is not installed") from cause
