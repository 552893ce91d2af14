"""`headrace collections transfer`: a collection from the data folder to a Qdrant server, or back, as it is."""

from __future__ import annotations

import asyncio
import enum
from typing import Annotated

import typer

from retrieval.cli.output import note, print_json, show
from retrieval.cli.session import SETTINGS, Session, with_session

_NOTED_EVERY = 1_024  # documents


class Side(enum.StrEnum):
    """Where a collection can go."""

    QDRANT = "qdrant"
    EDGE = "edge"


@with_session(*SETTINGS)
def transfer(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The collection.")],
    to: Annotated[Side, typer.Option("--to", help="The other side: the server at index.qdrant, or the data folder.")],
    new_name: Annotated[str, typer.Option("--as", metavar="NAME", help="Another name over there.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", help="Whose collection.")] = "default",
    prune: Annotated[bool, typer.Option("--prune", help="Remove from the other side what is not here.")] = False,
) -> None:
    """Carry a collection to the other side with its vectors, and compare both; again, it brings what has changed."""
    from indexers.types import CollectionKey
    from retrieval.server.transferring import transfer_collection

    def tell(count: int) -> None:
        if count % _NOTED_EVERY == 0:
            note(f"{count:,} documents looked at")

    source, target = CollectionKey(tenant, name), CollectionKey(tenant, new_name or name)
    settings = session.load().settings
    report = asyncio.run(transfer_collection(settings, source, target, to.value, prune=prune, progress=tell))
    if session.json:
        print_json(
            {
                "collection": target.collection,
                "to": to.value,
                "documents": report.documents,
                "chunks": report.chunks,
                "written": report.written,
                "removed": report.removed,
            }
        )
        return
    show(f"{target.collection}: {report.documents:,} documents in {report.chunks:,} chunks on both sides, compared")
    show(f"{report.written:,} written, {report.removed:,} removed; {to.value} serves it once index.kind says so")
