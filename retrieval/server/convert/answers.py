"""Hits, contexts and the events of an answer as messages."""

from __future__ import annotations

from headrace.v1 import retrieval_pb2
from retrieval.server.convert.ledgers import epoch_to_pb, ledger_to_pb
from retrieval.server.convert.metadata import fill_metadata
from retrieval.server.convert.reuse import reuse_to_pb
from retrieval.types import (
    Citation,
    Completed,
    Context,
    Delta,
    DropReason,
    FinishReason,
    GenerateEvent,
    Hit,
    Retrieved,
    ScoreParts,
)

_DROPS = {reason: retrieval_pb2.DropReason.Value(f"DROP_REASON_{reason.name}") for reason in DropReason}
_FINISHES = {reason: retrieval_pb2.FinishReason.Value(f"FINISH_REASON_{reason.name}") for reason in FinishReason}


def retrieved_to_pb(retrieved: Retrieved) -> retrieval_pb2.RetrieveResponse:
    """Returns what was retrieved as a message; hits are filled in place, since a message that is assigned is copied."""
    message = retrieval_pb2.RetrieveResponse(
        request_id=retrieved.request_id,
        context=_context(retrieved.context),
        ledger=ledger_to_pb(retrieved.ledger),
        epoch=epoch_to_pb(retrieved.epoch),
    )
    for hit in retrieved.hits:
        _add_hit(message, hit)
    return message


def event_to_pb(event: GenerateEvent) -> retrieval_pb2.GenerateResponse:
    """Returns an event of an answer as a message."""
    if isinstance(event, Delta):
        return retrieval_pb2.GenerateResponse(delta=retrieval_pb2.Delta(text=event.text))
    if isinstance(event, Retrieved):
        return retrieval_pb2.GenerateResponse(retrieved=retrieved_to_pb(event))
    return retrieval_pb2.GenerateResponse(completed=_completed(event))


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


def _completed(completed: Completed) -> retrieval_pb2.Completed:
    usage = completed.usage
    return retrieval_pb2.Completed(
        finish_reason=_FINISHES[completed.finish_reason],
        usage=retrieval_pb2.Usage(
            prompt_tokens=usage.prompt_tokens,
            output_tokens=usage.output_tokens,
            cached_prompt_tokens=usage.cached_prompt_tokens,
        ),
        citations=[
            retrieval_pb2.AnswerCitation(
                number=citation.number, start=citation.start, end=citation.end, document_id=citation.document_id
            )
            for citation in completed.citations
        ],
        unknown_citations=completed.unknown_citations,
        ledger=ledger_to_pb(completed.ledger),
        backend=completed.backend,
        model=completed.model,
        reuse=reuse_to_pb(completed.reuse),
    )
