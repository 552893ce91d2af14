"""`headrace backup` and `headrace restore`: collections into a folder and back, of a data folder or a Qdrant server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.exits import WrongUse
from retrieval.cli.output import note, print_json, show, table
from retrieval.cli.session import SETTINGS, Session, with_session

if TYPE_CHECKING:
    from indexers.backup.manifest import BackedUp, Manifest
    from indexers.types import CollectionKey
    from retrieval.settings import Settings

Collections = Annotated[
    list[str] | None, typer.Option("--collection", "-c", metavar="NAME", help="Only this one; may be given again.")
]


@with_session(*SETTINGS)
def backup(
    session: Session,
    destination: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that is empty or not there yet.")],
    collection: Collections = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Whose; otherwise 'default', or all of a folder.")
    ] = None,
) -> None:
    """Back up collections; a server may go on serving and writing meanwhile."""
    from retrieval.server.backing_up import back_up

    settings = session.load().settings
    manifest = asyncio.run(back_up(settings, destination, tenant, collection or []))
    rows = [(one, one.key) for one in manifest.collections]
    _show(session, {"folder": str(destination), "kind": manifest.kind, "made_at": manifest.made_at}, rows)
    if manifest.left_out and not session.json:
        note(f"left out: {manifest.left_out}")


@with_session(*SETTINGS)
def restore(  # noqa: PLR0913 - each parameter is an option of the command
    session: Session,
    *,
    source: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a backup.")],
    collection: Collections = None,
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="Another name, for one collection.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", help="Another tenant than the backup says.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Replace collections that are there.")] = False,
    any_model: Annotated[
        bool, typer.Option("--any-model", help="Also what another model than the configured one has made.")
    ] = False,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="The queue of jobs too, from the backup of a data folder.")
    ] = False,
) -> None:
    """Restore collections from a backup, after every file of it was checked; no server may hold the data folder."""
    from indexers.backup.embedded import restore_others
    from indexers.backup.manifest import read_manifest
    from retrieval.server.backing_up import restore as restored

    settings = session.load().settings
    manifest = read_manifest(source)
    _check_kind(settings, manifest)
    places = _places(manifest, collection or [], name, tenant)
    asyncio.run(restored(settings, source, places, over=replace, any_model=any_model))
    others = restore_others(settings.data.folder, source) if jobs else []
    _show(session, {"folder": str(source), "kind": manifest.kind, "files": others}, places)


def _check_kind(settings: Settings, manifest: Manifest) -> None:
    from retrieval.server.backing_up import kind_of

    if manifest.kind != kind_of(settings):
        raise WrongUse(
            f"the backup is of the kind {manifest.kind!r}, the configured index of {kind_of(settings)!r}; restore it "
            "with --set index.kind=..., then `headrace collections transfer`"
        )


def _places(
    manifest: Manifest, names: Sequence[str], new_name: str, tenant: str
) -> list[tuple[BackedUp, CollectionKey]]:
    from indexers.errors import CollectionNotFound
    from indexers.types import CollectionKey

    there = {one.key.collection for one in manifest.collections}
    for name in names:
        if name not in there:
            raise CollectionNotFound(name)
    chosen = [one for one in manifest.collections if not names or one.key.collection in names]
    if new_name and len(chosen) != 1:
        raise WrongUse(f"--as is for one collection, and {len(chosen)} are chosen; name one with --collection")
    keys = [CollectionKey(tenant or one.key.tenant, new_name or one.key.collection) for one in chosen]
    if len(set(keys)) != len(keys):
        raise WrongUse("several tenants have a collection of one name; restore them one by one")
    return list(zip(chosen, keys, strict=True))


def _show(session: Session, facts: dict[str, Any], places: Sequence[tuple[BackedUp, CollectionKey]]) -> None:
    rows = [
        {
            "tenant": key.tenant,
            "name": key.collection,
            "documents": one.documents,
            "chunks": one.chunks,
            "bytes": sum(file.size_bytes for file in one.files),
        }
        for one, key in places
    ]
    if session.json:
        print_json({**facts, "collections": rows})
        return
    numbers = ["documents", "chunks", "bytes"]
    cells = [(str(row["tenant"]), str(row["name"]), *(f"{row[column]:,}" for column in numbers)) for row in rows]
    show(table(["tenant", "collection", *numbers], cells, right=numbers))
