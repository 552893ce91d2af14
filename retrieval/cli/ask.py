"""`headrace ask`: streams an answer, then shows its sources and where the time went."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.connecting import connect
from retrieval.cli.documents import Collection, Where
from retrieval.cli.exits import WorkFailed
from retrieval.cli.output import print_json, show, table
from retrieval.cli.retrieve import Question, TopK, place
from retrieval.cli.reuse import reuse_remarks
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.cli.waterfall import remarks, waterfall
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.v1.retrieval_pb2 import GenerateRequest
    from retrieval.client import Client

_NO_EVIDENCE = "Nothing was found to answer from."


@with_session(*CLIENT)
def ask(  # noqa: PLR0913 - each parameter is an option of the command
    session: Session,
    *,
    question: Question,
    collection: Collection,
    where: Where = "",
    top_k: TopK = None,
    backend: Annotated[str, typer.Option("--backend", help="Who answers; otherwise the configured default.")] = "",
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Take nothing that was made for another request.")
    ] = False,
    no_store: Annotated[bool, typer.Option("--no-store", help="Keep nothing of this request.")] = False,
    only_if_cached: Annotated[bool, typer.Option("--only-if-cached", help="Fail rather than generate.")] = False,
) -> None:
    """Ask a question; the answer is streamed, with its sources and stages after it."""
    from headrace.v1.retrieval_pb2 import CacheControl, GenerateRequest
    from retrieval.client import retrieve_request

    control = CacheControl(no_cache=no_cache, no_store=no_store, only_if_cached=only_if_cached)
    request = GenerateRequest(
        retrieve=retrieve_request(collection, question, top_k=top_k, filter=where or None, cache_control=control),
        backend=backend,
    )
    answer = asyncio.run(_ask(session, request))
    if session.json:
        print_json(answer)
    else:
        show(*answer_parts(answer))


async def _ask(session: Session, request: GenerateRequest) -> dict[str, Any]:
    async with connect(session) as client:
        return await answer(client, request, streamed=not session.json)


async def answer(client: Client, request: GenerateRequest, *, streamed: bool) -> dict[str, Any]:
    """Asks, writes the answer to standard output as it comes if it is to be streamed, and returns all of it.

    Raises:
        WorkFailed: the stream ended without its last event, so the answer is not whole.
    """
    text: list[str] = []
    retrieved: dict[str, Any] = {}
    ended = False
    try:
        async for event in client.generate(request):
            kind = event.WhichOneof("event")
            if kind == "retrieved":
                retrieved = plain(event.retrieved)
            elif kind == "delta":
                text.append(event.delta.text)
                if streamed:
                    sys.stdout.write(event.delta.text)
                    sys.stdout.flush()
            elif kind == "completed":
                ended = True
                if streamed:
                    sys.stdout.write("\n" if text else f"{_NO_EVIDENCE}\n")
                return _whole("".join(text), request, retrieved, plain(event.completed))
    finally:
        if streamed and text and not ended:
            sys.stdout.write("\n")  # what is said of the failure stands on a line of its own
    raise WorkFailed("the answer broke off; discard it and ask again")


def answer_parts(answer: dict[str, Any]) -> list[RenderableType | str]:
    """Returns what follows an answer: the sources, those that it cites marked, and the stages."""
    cited = {citation["number"] for citation in answer["citations"]}
    rows = [
        (
            f"[{source['number']}]",
            "cited" if source["number"] in cited else "",
            place(source),
            source["source_uri"],
        )
        for source in answer["sources"]
    ]
    sources: list[RenderableType | str] = [table(["source", "", "where", "from"], rows)] if rows else []
    said = [*reuse_remarks(answer["reuse"]), *remarks(answer["ledger"])]
    return [*sources, waterfall(answer["ledger"]), *said]


def _whole(text: str, request: GenerateRequest, retrieved: dict[str, Any], completed: dict[str, Any]) -> dict[str, Any]:
    return {
        "question": request.retrieve.query,
        "answer": text,
        **completed,
        "request_id": retrieved["request_id"],
        "sources": retrieved["context"]["citations"] if retrieved["context"] else [],
        "hits": retrieved["hits"],
        "epoch": retrieved["epoch"],
    }
