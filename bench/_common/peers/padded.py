"""FlashRank's way: all texts in one batch, padded to the longest, through an ONNX session with default options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from bench._common.peers.arms import Arm, blocking, versions
from bench._common.peers.folders import ONNX_FILE, PeerFolder

NAME = "one padded ONNX batch"
_PACKAGES = ("onnxruntime", "tokenizers")


def open_pairs(folder: PeerFolder) -> Arm:
    """Opens the cross-encoder; its scores are logits."""
    model = _Padded(folder)
    return Arm(
        NAME,
        "int8",
        versions(*_PACKAGES),
        blocking(lambda task: model.logits([(task.query, one) for one in task.passages])),
    )


def open_texts(folder: PeerFolder) -> Arm:
    """Opens the bi-encoder; token states are pooled by the mean over the mask and normalized."""
    model = _Padded(folder)
    return Arm(NAME, "int8", versions(*_PACKAGES), blocking(lambda task: model.vectors(task.passages)))


class _Padded:
    def __init__(self, folder: PeerFolder) -> None:
        self._session = ort.InferenceSession(str(folder.path / ONNX_FILE), providers=["CPUExecutionProvider"])
        self._takes = {one.name for one in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(folder.path / "tokenizer.json"))
        self._tokenizer.enable_truncation(folder.max_tokens)
        self._tokenizer.enable_padding()

    def logits(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        output, _ = self._run(pairs, axes=2)
        logits: NDArray[np.float32] = output[:, 0]
        return logits

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        states, mask = self._run(texts, axes=3)
        pooled = (states * mask[:, :, np.newaxis]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        unit: NDArray[np.float32] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return unit

    def _run(self, texts: Sequence[Any], axes: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        encoded: list[Encoding] = self._tokenizer.encode_batch(list(texts))
        given = {
            "input_ids": np.array([one.ids for one in encoded], dtype=np.int64),
            "attention_mask": np.array([one.attention_mask for one in encoded], dtype=np.int64),
            "token_type_ids": np.array([one.type_ids for one in encoded], dtype=np.int64),
        }
        name = next(one.name for one in self._session.get_outputs() if len(one.shape) == axes)
        [output] = self._session.run([name], {one: given[one] for one in self._takes})
        return output, given["attention_mask"].astype(np.float32)
