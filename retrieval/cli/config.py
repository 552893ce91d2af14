"""`headrace config`: shows, checks, reloads and documents the settings."""

from __future__ import annotations

import asyncio

import typer

from retrieval.cli.connecting import connect
from retrieval.cli.output import print_json, show, table
from retrieval.cli.session import CLIENT, JSON_ONLY, SETTINGS, Session, with_session
from retrieval.server.convert.plain import plain

commands = typer.Typer(help="Show, check, reload and document the settings.", no_args_is_help=True)


@commands.command("show")
@with_session(*SETTINGS)
def show_settings(session: Session) -> None:
    """Show every setting with its origin; secrets are masked."""
    from retrieval.settings.shown import shown_settings

    loaded = session.load()
    shown = list(shown_settings(loaded))
    if session.json:
        settings = [
            {"path": one.path, "value": one.value, "origin": one.origin, "reloadable": one.reloadable} for one in shown
        ]
        print_json({"file": None if loaded.file is None else str(loaded.file), "settings": settings})
        return
    rows = [(one.path, one.value, one.origin, "reload" if one.reloadable else "") for one in shown]
    show(table(["setting", "value", "origin", ""], rows))


@commands.command("check")
@with_session(*SETTINGS)
def check(session: Session) -> None:
    """Check the settings, without opening models or connections; the exit code is 2 when they cannot be used."""
    from retrieval.caching.open import check_redis, check_sharing
    from retrieval.identity import check_bind
    from retrieval.settings.files import check_files

    loaded = session.load()
    check_bind(loaded.settings)
    check_sharing(loaded.settings)
    check_redis(loaded.settings.cache.redis)
    check_files(loaded.settings)
    source = str(loaded.file) if loaded.file is not None else "the defaults"
    if session.json:
        print_json({"file": None if loaded.file is None else str(loaded.file), "ok": True})
    else:
        show(f"{source}: good")


@commands.command("reload")
@with_session(*CLIENT)
def reload(session: Session) -> None:
    """Make the running server read its settings again; all of them are applied, or none."""
    reply = asyncio.run(_reload(session))
    if session.json:
        print_json(reply)
        return
    changed = [(one["path"], one["value"], "in force") for one in reply["changed"]]
    waiting = [(one["path"], one["value"], "needs a restart") for one in reply["needs_restart"]]
    show(table(["setting", "value", ""], changed + waiting) if changed or waiting else "nothing has changed")


async def _reload(session: Session) -> dict[str, list[dict[str, str]]]:
    async with connect(session) as client:
        reply: dict[str, list[dict[str, str]]] = plain(await client.reload_config())
        return reply


@commands.command("reference")
@with_session(*JSON_ONLY)
def reference(session: Session) -> None:
    """Print the reference of all settings as Markdown."""
    from retrieval.settings.reference import reference_markdown

    _print_text(session, reference_markdown())


@commands.command("example")
@with_session(*JSON_ONLY)
def example(session: Session) -> None:
    """Print a settings file with every setting and its default, commented out."""
    from retrieval.settings.reference import example_toml

    _print_text(session, example_toml())


def _print_text(session: Session, text: str) -> None:
    if session.json:
        print_json({"text": text})
    else:
        typer.echo(text, nl=False)
