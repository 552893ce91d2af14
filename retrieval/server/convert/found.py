"""Hits and contexts as messages, remembered as bytes while they are asked for again.

Building the message of ten hits takes longer than all else that is done for a reply from the cache, and a result that
is kept is the same object each time. So its bytes are kept beside it, by identity: reading them into a message is ten
times faster than building it.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.v1 import retrieval_pb2
from retrieval.caching.s3fifo import S3Fifo
from retrieval.server.convert.conversations import conversation_to_pb
from retrieval.server.convert.ledgers import epoch_to_pb, ledger_to_pb
from retrieval.server.convert.metadata import fill_metadata
from retrieval.types import Citation, Context, DropReason, Hit, Retrieved, ScoreParts

_CAPACITY_BYTES = 16 * 1024 * 1024
_HELD_BYTES = 2  # of what was found, which lives as long, for each byte of its message
_DROPS = {reason: retrieval_pb2.DropReason.Value(f"DROP_REASON_{reason.name}") for reason in DropReason}


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found, which this keeps alive so that its identity stays its own, and its message."""

    found: tuple[tuple[Hit, ...], Context]
    content: bytes


class FoundMessages:
    """Writes what was retrieved into messages."""

    def __init__(self, capacity_bytes: int = _CAPACITY_BYTES) -> None:
        self._known: S3Fifo[int, _Known] = S3Fifo(
            "messages", capacity_bytes, lambda known: (1 + _HELD_BYTES) * len(known.content)
        )

    def fill(self, message: retrieval_pb2.RetrieveResponse, retrieved: Retrieved) -> None:
        """Fills an empty message in place, since a message that is assigned is copied."""
        message.MergeFromString(self._content(retrieved))
        message.request_id = retrieved.request_id
        message.epoch.CopyFrom(epoch_to_pb(retrieved.epoch))
        message.ledger.CopyFrom(ledger_to_pb(retrieved.ledger))
        if (conversation := conversation_to_pb(retrieved.conversation)) is not None:
            message.conversation.CopyFrom(conversation)

    def _content(self, retrieved: Retrieved) -> bytes:
        hits, context = retrieved.hits, retrieved.context
        known = self._known.get(id(context))
        if known is not None and known.found[0] is hits and known.found[1] is context:
            return known.content
        message = retrieval_pb2.RetrieveResponse(context=_context(context))
        for hit in hits:
            _add_hit(message, hit)
        content = message.SerializeToString()
        self._known.put(id(context), _Known((hits, context), content))
        return content


def _add_hit(message: retrieval_pb2.RetrieveResponse, hit: Hit) -> None:
    passage = hit.passage
    added = message.hits.add(
        chunk_id=passage.chunk_id,
        document_id=passage.document_id,
        title=passage.title,
        heading_path=passage.heading_path,
        text=passage.text,
        start=passage.start,
        end=passage.end,
        page=passage.page,
        source_uri=passage.source_uri,
        score=hit.score,
        scores=_scores(hit.parts),
    )
    fill_metadata(added.metadata, passage.metadata)


def _scores(parts: ScoreParts) -> retrieval_pb2.ScoreParts:
    return retrieval_pb2.ScoreParts(
        dense=parts.dense, sparse=parts.sparse, fused=parts.fused, rerank=parts.rerank, late=parts.late
    )


def _context(context: Context) -> retrieval_pb2.Context:
    return retrieval_pb2.Context(
        text=context.text,
        tokens=context.token_count,
        budget_tokens=context.budget_tokens,
        tokenizer=context.tokenizer,
        citations=[_citation(citation) for citation in context.citations],
        dropped=[
            retrieval_pb2.DroppedPassage(chunk_id=dropped.chunk_id, reason=_DROPS[dropped.reason])
            for dropped in context.dropped
        ],
    )


def _citation(citation: Citation) -> retrieval_pb2.Citation:
    passage = citation.passage
    return retrieval_pb2.Citation(
        number=citation.number,
        document_id=passage.document_id,
        chunk_ids=citation.chunk_ids,
        title=passage.title,
        heading_path=passage.heading_path,
        start=passage.start,
        end=passage.end,
        page=passage.page,
        source_uri=passage.source_uri,
    )
