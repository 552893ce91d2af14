"""The tree of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from retrieval.cli import (
    ask,
    backends,
    backup,
    cache,
    collections,
    config,
    demo,
    documents,
    health,
    index,
    info,
    jobs,
    keys,
    migrate,
    models,
    rerank_train,
    retrieve,
    route,
    serve,
    transfer,
    worker,
)

_HELP = """From question to grounded, cited, streamed answer.

Exit codes: 0 done, 1 the work or a part of it failed, 2 wrong use or configuration, 3 the work waits for a person.
"""

app = typer.Typer(
    name="headrace",
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # half of the time that help takes would be spent on importing its renderer
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(version("headrace"))
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


app.command("serve")(serve.serve)
app.command("index")(index.index)
app.command("ask")(ask.ask)
app.command("retrieve")(retrieve.retrieve)
collections.commands.command("migrate")(migrate.migrate)
collections.commands.command("migration")(migrate.migration)
collections.commands.command("transfer")(transfer.transfer)
app.add_typer(collections.commands, name="collections")
app.add_typer(documents.commands, name="documents")
app.add_typer(jobs.commands, name="jobs")
app.command("worker")(worker.worker)
app.add_typer(cache.commands, name="cache")
app.add_typer(config.commands, name="config")
app.add_typer(keys.commands, name="keys")
app.add_typer(rerank_train.commands, name="rerank")
app.add_typer(models.commands, name="models")
app.add_typer(backends.commands, name="backends")
app.add_typer(route.commands, name="route")
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("info")(info.info)
app.command("health")(health.health)
app.command("demo")(demo.demo)
