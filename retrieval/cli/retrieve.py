"""`headrace retrieve`: the passages that answer a question, with their scores and where the time went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.collections import call
from retrieval.cli.documents import Collection, Where
from retrieval.cli.output import print_json, show, table
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.cli.waterfall import remarks, waterfall
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN_CHARACTERS = 160

Question = Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")]
TopK = Annotated[int | None, typer.Option("--top-k", min=1, help="Hits at most.")]


@with_session(*CLIENT)
def retrieve(
    session: Session, question: Question, collection: Collection, where: Where = "", top_k: TopK = None
) -> None:
    """Find the passages that answer a question."""
    reply = plain(
        call(session, lambda client: client.retrieve(collection, question, top_k=top_k, filter=where or None))
    )
    if session.json:
        print_json(reply)
        return
    show(hit_table(reply["hits"]), waterfall(reply["ledger"]), *remarks(reply["ledger"]))


def hit_table(hits: list[dict[str, Any]]) -> RenderableType | str:
    """Returns hits, best first, with their scores and how they begin."""
    if not hits:
        return "nothing was found"
    parts = ["dense", "sparse", "late", "rerank"]
    rows = [
        (
            str(rank),
            f"{hit['score']:.3f}",
            *(_score(hit["scores"], part) for part in parts),
            place(hit),
            _beginning(hit),
        )
        for rank, hit in enumerate(hits, 1)
    ]
    return table(["", "score", *parts, "where", "passage"], rows, right=["", "score", *parts])


def _score(scores: dict[str, float | None] | None, part: str) -> str:
    value = (scores or {}).get(part)
    return "" if value is None else f"{value:.3f}"


def place(found: dict[str, Any]) -> str:
    """Returns where a hit or a citation stands: title, headings that do not repeat it, and page."""
    title = found["title"] or found["document_id"]
    headings = found["heading_path"][found["heading_path"][:1] == [title] :]
    return " > ".join([title, *headings]) + (f", page {found['page']}" if found["page"] else "")


def _beginning(hit: dict[str, Any]) -> str:
    text = " ".join(hit["text"].split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
