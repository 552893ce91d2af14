"""The events of an answer, and the reply to Retrieve, as messages."""

from __future__ import annotations

from headrace.v1 import retrieval_pb2
from retrieval.server.convert.found import FoundMessages
from retrieval.server.convert.ledgers import ledger_to_pb
from retrieval.server.convert.reuse import reuse_to_pb
from retrieval.speech import Delta, FinishReason
from retrieval.types import Completed, GenerateEvent, Retrieved

_FINISHES = {reason: retrieval_pb2.FinishReason.Value(f"FINISH_REASON_{reason.name}") for reason in FinishReason}


def retrieved_to_pb(retrieved: Retrieved, found: FoundMessages) -> retrieval_pb2.RetrieveResponse:
    """Returns what was retrieved as a message."""
    message = retrieval_pb2.RetrieveResponse()
    found.fill(message, retrieved)
    return message


def event_to_pb(event: GenerateEvent, found: FoundMessages) -> retrieval_pb2.GenerateResponse:
    """Returns an event of an answer as a message."""
    if isinstance(event, Delta):
        return retrieval_pb2.GenerateResponse(delta=_delta(event))
    if isinstance(event, Retrieved):
        message = retrieval_pb2.GenerateResponse()
        found.fill(message.retrieved, event)
        return message
    return retrieval_pb2.GenerateResponse(completed=_completed(event))


def _delta(delta: Delta) -> retrieval_pb2.Delta:
    if not delta.tool_calls:
        return retrieval_pb2.Delta(text=delta.text, reasoning=delta.reasoning)
    calls = [
        retrieval_pb2.ToolCall(index=call.index, id=call.id, name=call.name, arguments=call.arguments)
        for call in delta.tool_calls
    ]
    return retrieval_pb2.Delta(text=delta.text, reasoning=delta.reasoning, tool_calls=calls)


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
