"""Larger collections, of passages of which only the first tokens are embedded, so that many are encoded in minutes.

They tell whether what grows with the size goes on as the smaller ones say. Vectors are kept and not computed twice.
Words are counted of the whole passage; there are no token codes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench._common.engines import Encoders
from bench._common.passages import cut_to_tokens, read_passages
from bench._common.pipelines import KEY, open_catalog
from bench._common.pools import encode_all
from bench._common.scale.costs import Size
from bench._common.scale.storing import measured_size, watched
from encoders.terms import count_terms
from encoders.types import TextKind
from indexers.chunking import chunk_id
from indexers.types import Chunk, Document, EncodedChunk, EncodedDocument
from retrieval.settings import Settings

_TOKENS = 48
_WRITTEN_AT_ONCE = 500


async def measure_further(
    folder: Path, corpus: Path, sizes: Sequence[int], settings: Settings, encoders: Encoders, asked: Path
) -> tuple[Size, ...]:
    """Writes passages until each size is reached, and builds and searches there."""
    if not sizes:
        return ()
    counter = encoders.dense.tokenization
    passages = read_passages(corpus, sizes[-1])
    texts = [cut_to_tokens(passage.text, counter, _TOKENS) for passage in passages]
    vectors = await encode_all(encoders.cached, texts, TextKind.PASSAGE)
    data, written = folder / "further", 0
    found: list[Size] = []
    for wanted in sizes:
        catalog = open_catalog(settings, encoders.dense, data)
        try:
            index = await (catalog.open(KEY) if found else catalog.create(KEY, {}, "", token_vectors=False))
            while written < wanted:
                until = min(written + _WRITTEN_AT_ONCE, wanted)
                part = zip(passages[written:until], vectors[written:until], strict=True)
                await index.upsert([_document(passage, vector) for passage, vector in part])
                written = until
            built = await watched(index.build())
        finally:
            await catalog.close()
        found.append(await asyncio.to_thread(measured_size, data, (wanted, wanted), built, asked))
    return tuple(found)


def _document(passage: Document, vector: NDArray[np.float32]) -> EncodedDocument:
    text, name = passage.text, passage.document_id
    chunk = Chunk(chunk_id(name, text, 0), 0, 0, len(text), (), 0, text, len(text.split()), "", 0)
    return EncodedDocument(passage, "further", (EncodedChunk(chunk, vector, count_terms(text)),))
