"""sentence-transformers with its defaults: batches of 32, padded to the longest, as many threads as torch takes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench._common.peers.arms import REFERENCE, Arm, ArmMissing, blocking, versions
from bench._common.peers.folders import PeerFolder

_PACKAGES = ("sentence-transformers", "transformers", "torch")


def open_pairs(folder: PeerFolder) -> Arm:
    """Opens `CrossEncoder` on torch.

    The only default that is changed is the activation: logits are compared, not their sigmoids.

    Raises:
        ArmMissing: a package or the weights are not there.
    """
    library, torch = _libraries(folder)
    model = library.CrossEncoder(
        str(folder.path), device="cpu", max_length=folder.max_tokens, activation_fn=torch.nn.Identity()
    )
    return Arm(
        REFERENCE,
        "fp32",
        versions(*_PACKAGES),
        blocking(lambda task: model.predict([(task.query, one) for one in task.passages], show_progress_bar=False)),
    )


def open_texts(folder: PeerFolder) -> Arm:
    """Opens `SentenceTransformer` on torch.

    Raises:
        ArmMissing: a package or the weights are not there.
    """
    library, _ = _libraries(folder)
    model = library.SentenceTransformer(str(folder.path), device="cpu")
    model.max_seq_length = folder.max_tokens
    return Arm(
        REFERENCE,
        "fp32",
        versions(*_PACKAGES),
        blocking(lambda task: model.encode(list(task.passages), show_progress_bar=False)),
    )


def _libraries(folder: PeerFolder) -> tuple[Any, Any]:
    try:
        found = import_module("sentence_transformers"), import_module("torch")
        folder.add_torch_weights()
    except ImportError as cause:
        raise ArmMissing(REFERENCE, f"{cause.name} is not installed") from cause
    return found
