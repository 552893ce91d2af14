"""`headrace documents`: lists, shows, deletes and counts documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.collections import call
from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.output import pairs, print_json, show, table
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from retrieval.client import Client

commands = typer.Typer(help="List, show, delete and count documents.", no_args_is_help=True)

Collection = Annotated[str, typer.Option("--collection", "-c", metavar="NAME", help="The collection.")]
Where = Annotated[
    str,
    typer.Option("--where", metavar="FILTER", help="""Restrict by metadata: 'product = "git" AND year >= 2020'."""),
]


@commands.command("list")
@with_session(*CLIENT)
def list_(
    session: Session,
    collection: Collection,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Documents at most.")] = 100,
    after: Annotated[str, typer.Option("--page-token", help="Where the page before ended.")] = "",
) -> None:
    """List documents by id, without their text."""
    found, token = call(session, lambda client: _pages(client, collection, limit, after))
    if session.json:
        print_json({"documents": found, "next_page_token": token})
        return
    rows = [
        (one["id"], one["title"], str(one["chunk_count"]), f"{one['text_length']:,}", _metadata(one["metadata"]))
        for one in found
    ]
    show(table(["id", "title", "chunks", "characters", "metadata"], rows, right=["chunks", "characters"]))
    if token:
        show(f"there are more: --page-token {token}")


@commands.command("show")
@with_session(*CLIENT)
def show_(session: Session, document_id: Annotated[str, typer.Argument(metavar="ID")], collection: Collection) -> None:
    """Show a document with its text."""
    document = plain(call(session, lambda client: client.get_document(collection, document_id)))
    if session.json:
        print_json(document)
        return
    facts = (("id", "id"), ("title", "title"), ("source", "source_uri"))
    show(
        pairs([*((name, document[key]) for name, key in facts), ("metadata", _metadata(document["metadata"]))]),
    )
    typer.echo(f"\n{document['text']}")


@commands.command("delete")
@with_session(*CLIENT)
def delete(
    session: Session,
    collection: Collection,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID")] = None,
    where: Where = "",
) -> None:
    """Delete documents by id or by filter; the exit code is 1 when some of the ids are not there."""
    if bool(ids) == bool(where):
        raise WrongUse("give either ids or --where")
    reply = plain(
        call(session, lambda client: client.delete_documents(collection, ids=ids or None, filter=where or None))
    )
    if session.json:
        print_json(reply)
    else:
        show(f"deleted {reply['deleted']} documents")
    if ids and reply["deleted"] < len(set(ids)):
        raise WorkFailed(f"{len(set(ids)) - reply['deleted']} of the ids are not in {collection!r}; list the documents")


@commands.command("count")
@with_session(*CLIENT)
def count(session: Session, collection: Collection, where: Where = "") -> None:
    """Count documents and chunks."""
    reply = plain(call(session, lambda client: client.count(collection, where or None)))
    if session.json:
        print_json(reply)
    else:
        show(f"{reply['documents']:,} documents, {reply['chunks']:,} chunks")


async def _pages(client: Client, collection: str, limit: int, token: str) -> tuple[list[dict[str, Any]], str]:
    found: list[dict[str, Any]] = []
    while True:
        page = await client.list_documents(collection, page_size=min(limit - len(found), 1000), page_token=token)
        found += [plain(document) for document in page.documents]
        token = page.next_page_token
        if not token or len(found) >= limit:
            return found, token


def _metadata(metadata: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in metadata.items())
