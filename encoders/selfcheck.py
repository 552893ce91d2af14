"""The start-up check: a model must compute on this CPU what it computed in full precision elsewhere.

Quantized products saturate on some CPUs and not on others, without any error: similarities just come out wrong. A model
that ships a `reference.json` ({"texts": [...], "fp32_vectors": [[...], ...]}) is compared with it before it serves.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelCheckFailed

# The bundled int8 model agrees with its references to 0.983 at least; saturation costs far more than this bound allows.
LOWEST_COSINE = 0.97
_QUICK_TEXTS = 4


def check_dense(encoder: OnnxDenseEncoder, folder: Path, *, every_text: bool = False) -> float | None:
    """Compares vectors with the model's references: the four shortest texts, or all of them.

    Returns the lowest cosine; None when the model ships no references.

    Raises:
        ModelCheckFailed: a vector is further off than `LOWEST_COSINE`, or the references cannot be used.
    """
    path = folder / "reference.json"
    if not path.is_file():
        return None
    texts, expected = _references(encoder, path)
    chosen = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    chosen = chosen if every_text else chosen[:_QUICK_TEXTS]
    items = encoder.tokenization.texts([texts[position] for position in chosen])
    found = np.stack(encoder.engine.run(items))
    lowest = float((found * expected[chosen]).sum(axis=1).min())
    if not lowest >= LOWEST_COSINE:
        reason = f"its vectors agree with the references to {lowest:.3f} only, on this CPU; use another export of it"
        raise ModelCheckFailed(encoder.model_id, reason)
    return lowest


def _references(encoder: OnnxDenseEncoder, path: Path) -> tuple[list[str], NDArray[np.float32]]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        texts, vectors = list(stored["texts"]), np.array(stored["fp32_vectors"], dtype=np.float32)
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise ModelCheckFailed(encoder.model_id, "reference.json cannot be read; restore or remove it") from cause
    if not texts or vectors.shape != (len(texts), encoder.dim):
        raise ModelCheckFailed(encoder.model_id, "reference.json does not fit the model; restore or remove it")
    return texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
