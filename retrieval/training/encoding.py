"""Texts to vectors and to token states on all cores, outside the scheduler: nobody waits for a single one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from encoders.cpu import usable_cpus
from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelUnsupported
from encoders.types import TextKind, TokenizedText

_Result = TypeVar("_Result")
Advance = Callable[[str, int, int], None]  # what is done, how much of it, out of how much

_REPORT_EVERY = 64


@dataclass(frozen=True, slots=True)
class TokenStates:
    """A text's tokens: ids int64 [tokens] and states float16 [tokens, dim] of unit length."""

    ids: NDArray[np.int64]
    states: NDArray[np.float16]


class BulkEncoder:
    """A bi-encoder for whole collections."""

    def __init__(self, encoder: OnnxDenseEncoder, advance: Advance) -> None:
        self._encoder = encoder
        self._advance = advance

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Returns the passages as the model takes them."""
        return self._encoder.tokenize(texts, TextKind.PASSAGE)

    def vectors(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """Returns float32 [n, dim], unit length."""
        found = self._map(f"{kind.value} vectors", self._vector, self._encoder.tokenize(texts, kind))
        return np.stack(found) if found else np.empty((0, self._encoder.dim), dtype=np.float32)

    def states(self, texts: Sequence[str], kind: TextKind) -> list[TokenStates]:
        """Returns each text's token states.

        Raises:
            ModelUnsupported: the model pools by itself and gives none.
        """
        return self._map(f"{kind.value} tokens", self._states, self._encoder.tokenize(texts, kind))

    def _map(
        self, what: str, function: Callable[[TokenizedText], _Result], items: Sequence[TokenizedText]
    ) -> list[_Result]:
        results = []
        with ThreadPoolExecutor(usable_cpus()) as threads:
            for result in threads.map(function, items):
                results.append(result)
                if len(results) % _REPORT_EVERY == 0 or len(results) == len(items):
                    self._advance(what, len(results), len(items))
        return results

    def _vector(self, item: TokenizedText) -> NDArray[np.float32]:
        return self._encoder.engine.run([item])[0]

    def _states(self, item: TokenizedText) -> TokenStates:
        states = self._encoder.engine.vectors_and_states([item])[0][1]
        if states is None:
            raise ModelUnsupported(
                self._encoder.model_id, "it gives no token states; choose a bi-encoder whose file does"
            )
        unit = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-9)
        return TokenStates(item.ids, unit.astype(np.float16))
