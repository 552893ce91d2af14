"""From a canonical text to chunks: blocks by structure, packed within a hard limit in the encoder's tokens."""

from indexers.chunking.chunker import Chunker, ChunkLimits, chunk_id
from indexers.chunking.headers import header_text

__all__ = ["ChunkLimits", "Chunker", "chunk_id", "header_text"]
