"""Small encoded documents without a model: vectors and terms are made of the words, so like texts are alike."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoders.bm25 import query_vector
from encoders.late.codec import LevelCodec
from encoders.types import TermCounts
from indexers.index import Index
from indexers.types import Chunk, Document, EncodedChunk, EncodedDocument, Metadata, SearchQuery

DIM = 16
CODEC = LevelCodec(8, 4)


def word_vector(text: str, dim: int = DIM) -> NDArray[np.float32]:
    """Returns a unit vector float32 [dim]: the sum of one fixed random vector a word."""
    total = np.full(dim, 1e-3)
    for word in text.split():
        total += np.random.default_rng(zlib.crc32(word.encode())).normal(size=dim)
    unit: NDArray[np.float32] = (total / np.linalg.norm(total)).astype(np.float32)
    return unit


def token_vectors(text: str, dim: int = CODEC.dim) -> NDArray[np.float32]:
    """Returns one unit vector a word, float32 [words, dim]."""
    vectors = [word_vector(word, dim) for word in text.split()]
    return np.array(vectors, dtype=np.float32).reshape(-1, dim)


def term_counts(text: str) -> TermCounts:
    """Returns the text's words as hashed terms."""
    words = text.split()
    terms, counts = np.unique([zlib.crc32(word.encode()) for word in words], return_counts=True)
    return TermCounts(terms.astype(np.uint32), counts.astype(np.uint16), len(words))


def encoded(
    document_id: str,
    texts: Sequence[str],
    metadata: Metadata | None = None,
    fingerprint: str = "",
    dim: int = DIM,
    codec: LevelCodec | None = CODEC,
) -> EncodedDocument:
    """Returns a document with one chunk a text, one a line; one token vector a word when there is a codec."""
    chunks, start = [], 0
    for ordinal, text in enumerate(texts):
        chunk_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{document_id}|{text}|{list(texts[:ordinal]).count(text)}"))
        end, path, count = start + len(text), ("Part", str(ordinal)), len(text.split())
        chunk = Chunk(chunk_id, ordinal, start, end, path, 0, text, count, f"Part > {ordinal}", 3)
        codes = None if codec is None else codec.encode(token_vectors(text, codec.dim))
        chunks.append(EncodedChunk(chunk, word_vector(text, dim), term_counts(text), codes))
        start += len(text) + 1
    document = Document(document_id, f"Title of {document_id}", "\n".join(texts), metadata=metadata or {})
    return EncodedDocument(document, fingerprint or f"{zlib.crc32(document.text.encode())}", tuple(chunks))


def hybrid(index: Index, text: str, limit: int = 10, *, exact: bool = False) -> SearchQuery:
    """Returns a search of both branches."""
    return SearchQuery(word_vector(text), query_vector(term_counts(text), index.statistics), limit, exact)


async def found_documents(index: Index, query: SearchQuery, filter: object = None) -> set[str]:
    """Returns the ids of the documents that a search finds."""
    candidates = await index.search(query, filter)  # type: ignore[arg-type]
    return {passage.document_id for passage in await index.fetch(candidates.chunk_ids)}
