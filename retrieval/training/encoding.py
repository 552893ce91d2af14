"""Texts to what the engines that serve make of them, on all cores and outside the scheduler: nobody waits for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from encoders.cpu import one_blas_thread, usable_cpus
from encoders.dense import OnnxDenseEncoder
from encoders.late.engines import PassageEngine, QueryEngine
from encoders.types import EncodedPassage, EncodedQuery, Engine, TextKind, TokenCodec

_Encoded = TypeVar("_Encoded")
Advance = Callable[[str, int, int], None]  # what is done, how much of it, out of how much

_REPORT_EVERY = 64


class BulkEncoder:
    """A bi-encoder for whole collections; `late` says whether late interaction takes part where the model can."""

    def __init__(self, encoder: OnnxDenseEncoder, advance: Advance, *, late: bool = True) -> None:
        projection = encoder.projection if late else None
        self._encoder = encoder
        self._queries = QueryEngine(encoder.engine, projection)
        self._passages = PassageEngine(encoder.engine, projection)
        self._advance = advance
        self.codec: TokenCodec | None = None if projection is None else projection.codec

    def queries(self, texts: Sequence[str]) -> list[EncodedQuery]:
        """Returns each query's vector and its token vectors."""
        return self._run(self._queries, texts, TextKind.QUERY)

    def passages(self, texts: Sequence[str]) -> list[EncodedPassage]:
        """Returns each passage's vector and the codes of its token vectors, from one run each."""
        return self._run(self._passages, texts, TextKind.PASSAGE)

    def matrix(self, encoded: Sequence[EncodedQuery] | Sequence[EncodedPassage]) -> NDArray[np.float32]:
        """Returns their vectors as float32 [n, dim], unit length."""
        vectors = [one.vector for one in encoded]
        return np.stack(vectors) if vectors else np.empty((0, self._encoder.dim), dtype=np.float32)

    def _run(self, engine: Engine[_Encoded], texts: Sequence[str], kind: TextKind) -> list[_Encoded]:
        items = self._encoder.tokenize(texts, kind)
        results: list[_Encoded] = []
        with one_blas_thread(), ThreadPoolExecutor(usable_cpus()) as threads:
            # One text a run, as it is served: a vector does not change with its neighbours.
            for [result] in threads.map(lambda item: engine.run([item]), items):
                results.append(result)
                if len(results) % _REPORT_EVERY == 0 or len(results) == len(items):
                    self._advance(f"encoding: {kind.value}", len(results), len(items))
        return results
