"""The references beside a model: short texts or pairs, and what the model makes of them in full precision.

`reference.json` is {"texts": [...], "fp32_vectors": [[...], ...]} for a bi-encoder and {"pairs": [[query, passage],
...], "fp32_logits": [...]} for a cross-encoder. Texts are given to the model without a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoders.errors import ModelCheckFailed

REFERENCE_FILE = "reference.json"

_QUERIES = (
    "how often does the pump need oil?",
    "who may open the server room",
    "refund for a cancelled ticket",
    "Wie tief ist der Bodensee?",
)
_PASSAGES = (
    "Change the oil of the pump after every 500 hours of work, and check the seal when you do.",
    "The server room is open to staff of the night shift only; everyone else asks at the desk.",
    "A ticket that is cancelled two days ahead is paid back in full, later by half.",
    "Der Bodensee ist an seiner tiefsten Stelle etwa 250 Meter tief.",
)
_LONGER = (
    "An index is rebuilt when a tenth of its entries are new. Until then, new entries are looked through one by one.",
    "Tomato soup: fry an onion, add a kilo of tomatoes and salt, and let it cook for twenty minutes.",
    "for row in rows: total += row.price * row.count  # in cents",
    "The bridge was closed on 3 May 1987 and opened again in 1991.",
    "cats and dogs",
    "error 0x80: no space is left on the device",
    "She did not sign the contract, although both sides had agreed on the price.",
    "Opening hours: Monday to Friday from 9 to 17, Saturday from 10 to 14.",
)
TEXTS = _QUERIES + _PASSAGES + _LONGER
PAIRS = tuple((query, passage) for query in _QUERIES for passage in _PASSAGES)


@dataclass(frozen=True, slots=True)
class TextReferences:
    """Texts and their full-precision vectors."""

    texts: tuple[str, ...]
    vectors: NDArray[np.float32]  # [n, dim], unit length


@dataclass(frozen=True, slots=True)
class PairReferences:
    """Pairs of query and passage and their full-precision logits."""

    pairs: tuple[tuple[str, str], ...]
    logits: NDArray[np.float64]  # [n]


def write_text_references(folder: Path, references: TextReferences) -> None:
    """Writes the references of a bi-encoder."""
    vectors = [[round(float(number), 6) for number in vector] for vector in references.vectors]
    _write(folder, {"texts": list(references.texts), "fp32_vectors": vectors})


def write_pair_references(folder: Path, references: PairReferences) -> None:
    """Writes the references of a cross-encoder."""
    logits = [round(float(logit), 6) for logit in references.logits]
    _write(folder, {"pairs": [list(pair) for pair in references.pairs], "fp32_logits": logits})


def read_text_references(folder: Path, model: str) -> TextReferences | None:
    """Reads the references of a bi-encoder; None when its folder has none.

    Raises:
        ModelCheckFailed: they cannot be used.
    """
    stored = _read(folder, model)
    if stored is None:
        return None
    try:
        texts, vectors = tuple(map(str, stored["texts"])), np.array(stored["fp32_vectors"], dtype=np.float32)
    except (KeyError, TypeError, ValueError) as cause:
        raise _unusable(model) from cause
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if vectors.shape[:1] != (len(texts),) or vectors.ndim != 2 or not texts or not (norms > 0).all():
        raise _unusable(model)
    return TextReferences(texts, vectors / norms)


def read_pair_references(folder: Path, model: str) -> PairReferences | None:
    """Reads the references of a cross-encoder; None when its folder has none.

    Raises:
        ModelCheckFailed: they cannot be used.
    """
    stored = _read(folder, model)
    if stored is None:
        return None
    try:
        pairs = tuple((str(query), str(passage)) for query, passage in stored["pairs"])
        logits = np.array(stored["fp32_logits"], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as cause:
        raise _unusable(model) from cause
    if logits.shape != (len(pairs),) or not pairs or not np.isfinite(logits).all():
        raise _unusable(model)
    return PairReferences(pairs, logits)


def _write(folder: Path, value: dict[str, Sequence[Any]]) -> None:
    (folder / REFERENCE_FILE).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _read(folder: Path, model: str) -> dict[str, Any] | None:
    path = folder / REFERENCE_FILE
    if not path.is_file():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise _unusable(model) from cause
    if not isinstance(stored, dict):
        raise _unusable(model)
    return stored


def _unusable(model: str) -> ModelCheckFailed:
    return ModelCheckFailed(model, f"{REFERENCE_FILE} cannot be used; restore or remove it")
