"""`headrace index`: reads files and writes them into a collection, through the running server or by itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrieval.cli.collections import declared_fields
from retrieval.cli.connecting import connect
from retrieval.cli.documents import Collection
from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.index_report import IndexProgress, index_progress, report_json, show_report
from retrieval.cli.output import note, print_json
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.endpoint_file import running_server

if TYPE_CHECKING:
    from indexers.reports import IndexReport
    from retrieval.cli.index_job import IndexJob


@with_session(*CLIENT)
def index(  # noqa: PLR0913 - each parameter is an option of the command
    session: Session,
    *,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files and folders to read.")],
    collection: Collection,
    create_field: Annotated[
        list[str] | None,
        typer.Option("--create-field", metavar="NAME:TYPE", help="A metadata field to declare; may be given again."),
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", metavar="KEY=VALUE", help="Metadata of every document.")
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove documents whose files are gone.")] = False,
    replace_sources: Annotated[
        bool, typer.Option("--replace-sources", help="Let documents replace those of other files with the same id.")
    ] = False,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Whose data, when no server runs; otherwise 'default'.")
    ] = None,
) -> None:
    """Read files into a collection.

    Only what has changed is embedded. The running server takes the documents; without one, the data folder is opened
    here. A document's id is its path relative to the folder given. A bad file never stops the run, and makes the exit
    code 1.
    """
    import asyncio

    from retrieval.cli.index_files import Files
    from retrieval.cli.index_job import IndexJob

    fields, given = declared_fields(create_field or []), _metadata(metadata or [])
    files = Files(paths, given)
    job = IndexJob(collection, fields, files, files.roots if prune else (), files.roots, replace_sources)
    begun = time.perf_counter()
    with index_progress(files.total_bytes, files.done_bytes) as progress:
        report = asyncio.run(_index(session, tenant, job, progress))
    _finish(session, report, collection, time.perf_counter() - begun)


async def _index(session: Session, tenant: str | None, job: IndexJob, progress: IndexProgress) -> IndexReport:
    from retrieval.cli.index_local import index_local
    from retrieval.cli.index_remote import index_remote

    settings = session.load().settings
    address = session.server or running_server(settings.data.folder)
    if address is None:
        note(f"no server has the data folder {settings.data.folder}; writing to it directly")
        return await index_local(settings, tenant or "default", job, progress)
    if tenant is not None:
        raise WrongUse(f"--tenant is for runs without a server; at {address} the API key decides the tenant")
    async with connect(session, address) as client:
        return await index_remote(client, job, progress)


def _finish(session: Session, report: IndexReport, collection: str, seconds: float) -> None:
    if session.json:
        print_json(report_json(report, collection, seconds))
    else:
        show_report(report, collection, seconds)
    if failed := report.counts.failed:
        others = report.counts.written + report.counts.unchanged
        rest = "the others are in place" if others else "there were no others"
        raise WorkFailed(f"{failed} files or documents could not be indexed; {rest}")


def _metadata(pairs: Sequence[str]) -> dict[str, str]:
    """Reads KEY=VALUE; the collection's schema makes of the text what it declares."""
    given = {}
    for text in pairs:
        name, sign, value = text.partition("=")
        if not (sign and name):
            raise WrongUse(f"--metadata {text!r} is not KEY=VALUE; write it like --metadata product=git")
        given[name] = value
    return given
