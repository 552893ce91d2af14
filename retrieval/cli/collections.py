"""`headrace collections`: lists, creates, shows, changes, deletes and builds collections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from retrieval.cli.connecting import connect
from retrieval.cli.exits import WrongUse
from retrieval.cli.output import pairs, print_json, show, table
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.v1.common_pb2 import FieldType
    from retrieval.client import Client

T = TypeVar("T")

_FIELD_TYPES = ("keyword", "integer", "float", "bool", "datetime", "text")

commands = typer.Typer(help="List, create, show, change, delete and build collections.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The collection.")]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="NAME:TYPE",
        help="A metadata field: keyword, integer, float, bool, datetime or text; may be given again.",
    ),
]

Description = Annotated[str | None, typer.Option("--description", help="What the collection is for.")]


@commands.command("list")
@with_session(*CLIENT)
def list_(session: Session) -> None:
    """List the collections."""
    found = call(session, _all)
    if session.json:
        print_json({"collections": found})
    else:
        show(collection_table(found))


@commands.command("create")
@with_session(*CLIENT)
def create(
    session: Session,
    name: Name,
    field: Fields = None,
    description: Description = None,
    token_vectors: Annotated[
        bool, typer.Option("--token-vectors/--no-token-vectors", help="Store token vectors for late interaction.")
    ] = True,
) -> None:
    """Create a collection."""
    declared = wire_fields(declared_fields(field or []))

    def ask(client: Client) -> Awaitable[Any]:
        wanted = description or ""
        return client.create_collection(name, fields=declared, description=wanted, token_vectors=token_vectors)

    _show_one(session, call(session, ask))


@commands.command("show")
@with_session(*CLIENT)
def show_(session: Session, name: Name) -> None:
    """Show a collection."""
    _show_one(session, call(session, lambda client: client.get_collection(name)))


@commands.command("update")
@with_session(*CLIENT)
def update(session: Session, name: Name, field: Fields = None, description: Description = None) -> None:
    """Declare more metadata fields, or change the description."""
    if not field and description is None:
        raise WrongUse("nothing to change; give --field or --description")
    declared = wire_fields(declared_fields(field)) if field else None
    _show_one(
        session, call(session, lambda client: client.update_collection(name, fields=declared, description=description))
    )


@commands.command("delete")
@with_session(*CLIENT)
def delete(
    session: Session, name: Name, yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False
) -> None:
    """Delete a collection with all its documents."""
    if not yes:
        typer.confirm(f"Delete the collection {name!r} with all its documents?", abort=True, err=True)
    call(session, lambda client: client.delete_collection(name))
    if session.json:
        print_json({"deleted": name})
    else:
        show(f"deleted {name}")


@commands.command("build")
@with_session(*CLIENT)
def build(session: Session, name: Name) -> None:
    """Fold all writes so far into a new generation, and serve from it."""
    epoch = plain(call(session, lambda client: client.build_collection(name)))
    if session.json:
        print_json({"collection": name, "epoch": epoch})
    else:
        show(f"{name}: serves generation {epoch['generation']}")


def call(session: Session, ask: Callable[[Client], Awaitable[T]]) -> T:
    """Runs one call against the session's server."""

    async def run() -> T:
        async with connect(session) as client:
            return await ask(client)

    return asyncio.run(run())


def declared_fields(fields: Sequence[str]) -> dict[str, str]:
    """Reads NAME:TYPE declarations.

    Raises:
        WrongUse: a declaration does not read so, or its type is none.
    """
    declared: dict[str, str] = {}
    for text in fields:
        name, _, kind = text.rpartition(":")
        if not name or kind not in _FIELD_TYPES:
            raise WrongUse(f"field {text!r} is not NAME:TYPE; the types are {', '.join(_FIELD_TYPES)}")
        declared[name] = kind
    return declared


def wire_fields(fields: Mapping[str, str]) -> dict[str, FieldType.ValueType]:
    """Returns declared fields as the wire has them."""
    from headrace.v1.common_pb2 import FieldType

    return {name: FieldType.Value(f"FIELD_TYPE_{kind.upper()}") for name, kind in fields.items()}


def collection_table(collections: Sequence[dict[str, Any]]) -> RenderableType:
    """Returns the collections as a table."""
    rows = [
        (
            one["name"],
            f"{one['document_count']:,}",
            f"{one['chunk_count']:,}",
            str(one["epoch"]["generation"]) if one["epoch"] else "",
            ", ".join(f"{name}:{kind}" for name, kind in one["fields"].items()),
            one["description"],
        )
        for one in collections
    ]
    numbers = ["documents", "chunks", "generation"]
    return table(["collection", *numbers, "fields", "description"], rows, right=numbers)


def _token_vectors(collection: dict[str, Any]) -> str:
    return f"{collection['token_code_bytes']} bytes a token" if collection["token_vectors"] else "not stored"


async def _all(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = await client.list_collections(page_token=token)
        found += [plain(collection) for collection in page.collections]
        if not (token := page.next_page_token):
            return found


def _show_one(session: Session, message: Any) -> None:
    collection = plain(message)
    if session.json:
        print_json(collection)
        return
    epoch = collection["epoch"] or {"generation": 0, "write_sequence": 0}
    show(
        pairs(
            (
                ("collection", collection["name"]),
                ("description", collection["description"]),
                ("fields", ", ".join(f"{name}:{kind}" for name, kind in collection["fields"].items()) or "none"),
                ("documents", f"{collection['document_count']:,}"),
                ("chunks", f"{collection['chunk_count']:,}"),
                ("model", f"{collection['dense_model']} ({collection['dim']} numbers)"),
                ("token vectors", _token_vectors(collection)),
                ("state", f"generation {epoch['generation']}, write {epoch['write_sequence']}"),
                ("created", collection["create_time"] or ""),
            )
        )
    )
