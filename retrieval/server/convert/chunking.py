"""How documents are to be cut: the message to the values that an indexer is made with."""

from __future__ import annotations

from headrace.v1 import index_pb2
from retrieval.errors import InvalidRequest
from retrieval.server.engines import Chunking


def chunking_from_pb(message: index_pb2.ChunkingOptions) -> Chunking:
    """Returns what the message asks for; what is absent is as the settings say.

    Raises:
        InvalidRequest: names the field and the bound.
    """
    limit = message.limit_tokens if message.HasField("limit_tokens") else None
    overlap = message.overlap_tokens if message.HasField("overlap_tokens") else None
    if limit is not None and not 32 <= limit <= 8_192:
        raise InvalidRequest("chunking.limit_tokens", "32..8192", f"chunking.limit_tokens is {limit}; use 32 to 8192")
    if overlap is not None and overlap > 1_024:
        bound = "0..1024"
        raise InvalidRequest("chunking.overlap_tokens", bound, f"chunking.overlap_tokens is {overlap}; use 0 to 1024")
    return Chunking(limit, overlap)
