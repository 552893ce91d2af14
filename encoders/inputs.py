"""What a text model takes: the names of its inputs, and a tokenized text as those inputs.

BERT takes token types, ModernBERT and RoBERTa do not: a model is fed what its graph names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from encoders.errors import ModelUnsupported
from encoders.onnx import OnnxSession
from encoders.pieces import PiecePolicy, cut
from encoders.types import TokenizedText


def inputs_of(session: OnnxSession, model_id: str) -> frozenset[str]:
    """Returns the names of a model's inputs.

    Raises:
        ModelUnsupported: it wants an input that a text does not give.
    """
    names = frozenset(tensor.name for tensor in session.inputs)
    if any(name.startswith("past_key_values") for name in names):
        raise ModelUnsupported(model_id, "it writes text (a causal language model); choose a bi-encoder")
    if "pixel_values" in names:
        raise ModelUnsupported(model_id, "it reads images; choose a bi-encoder")
    unknown = sorted(names - {"input_ids", "attention_mask", "token_type_ids"})
    if unknown or "input_ids" not in names:
        raise ModelUnsupported(
            model_id, f"it takes {sorted(names)}, a text encoder takes input_ids; choose another model"
        )
    return names


def feed(item: TokenizedText, names: frozenset[str]) -> dict[str, NDArray[np.int64]]:
    """Returns the inputs of a model for one text, [1, tokens] each; nothing is padded, so the mask is all ones."""
    ids = item.ids[np.newaxis]
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": item.type_ids[np.newaxis]}
    return {name: given[name] for name in names}


def feed_batch(items: Sequence[TokenizedText], names: frozenset[str]) -> dict[str, NDArray[np.int64]]:
    """Returns the inputs of a model for several texts, [texts, longest] each: padded behind, with the mask at zero."""
    shape = (len(items), max(item.token_count for item in items))
    given = {name: np.zeros(shape, dtype=np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
    for row, item in enumerate(items):
        given["input_ids"][row, : item.token_count] = item.ids
        given["attention_mask"][row, : item.token_count] = 1
        given["token_type_ids"][row, : item.token_count] = item.type_ids
    return {name: given[name] for name in names}


def run_in_pieces(
    session: OnnxSession, output: str, names: frozenset[str], items: Sequence[TokenizedText], policy: PiecePolicy
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Runs a model over texts, cut as the policy says; yields each text's position and its row of the output.

    Raises:
        EncodingFailed: the session failed on a piece.
    """
    for positions in cut([item.token_count for item in items], policy):
        piece = [items[position] for position in positions]
        inputs = feed(piece[0], names) if len(piece) == 1 else feed_batch(piece, names)
        yield from zip(positions, session.run(inputs, output), strict=True)
