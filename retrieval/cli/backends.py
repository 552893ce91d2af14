"""`headrace backends`: tries the configured backends, without a server of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.output import note, print_json, show, table
from retrieval.cli.session import SETTINGS, Session, with_session

if TYPE_CHECKING:
    from rich.console import RenderableType

    from retrieval.generation.backend import Backend
    from retrieval.generation.checking import BackendCheck
    from retrieval.settings.tree import Settings

_COLUMNS = ("backend", "server", "model", "reachable", "streams", "usage", "our count", "cached", "first token ms", "")

commands = typer.Typer(help="Try generation backends.", no_args_is_help=True)


@commands.callback()
def _group() -> None:
    pass


@commands.command("check")
@with_session(*SETTINGS)
def check(
    session: Session,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Backends to try; otherwise all of them.")
    ] = None,
) -> None:
    """Ask each server of each backend: reachable, streams, reports usage, counts tokens as we do, reports its cache.

    The exit code is 1 when one of them fails. Extractive answers compare words alone here.
    """
    from retrieval.telemetry.log import configure_log

    settings = session.load().settings
    configure_log("error", "console")  # what backends say of themselves is in the table
    checks = asyncio.run(_check_all(_servers(settings, names or []), quiet=session.json))
    if session.json:
        print_json({"backends": [check_value(server, found) for server, found in checks]})
    else:
        show(check_table(checks))
        for _, found in checks:
            if found.complaint:
                note(found.complaint if found.fault else f"{found.backend}: {found.complaint}")
    if failed := dict.fromkeys(found.backend for _, found in checks if not found.passed):
        raise WorkFailed(f"{' and '.join(map(repr, failed))} failed the check; mend or remove what is configured")


def _servers(settings: Settings, names: Sequence[str]) -> Mapping[str, Sequence[Backend]]:
    """Opens the servers of the named backends, or of all."""
    from retrieval.generation.open import open_backends
    from retrieval.token_counters import open_counter

    known = {backend.name: backend for backend in settings.generation.backends}
    if unknown := [name for name in names if name not in known]:
        raise WrongUse(f"no backend is called {unknown[0]!r}; choose of {', '.join(known)}")
    chosen = tuple(known[name] for name in dict.fromkeys(names or known))
    generation = settings.generation.model_copy(update={"backends": chosen})
    counter = open_counter(settings.context.tokenizer)
    return open_backends(generation, counter, None, models_folder=settings.data.folder / "models")


async def _check_all(servers: Mapping[str, Sequence[Backend]], *, quiet: bool) -> list[tuple[int, BackendCheck]]:
    """Returns what was found of each server, with its number within its backend."""
    from retrieval.generation.checking import check_backend

    checks: list[tuple[int, BackendCheck]] = []
    async with AsyncExitStack() as stack:
        for each in servers.values():
            for backend in each:
                stack.push_async_callback(backend.close)
        for name, each in servers.items():
            for number, backend in enumerate(each):
                if not quiet:
                    note(f"asking {name}" + (f", server {number}" if number else ""))
                checks.append((number, await check_backend(backend)))
    return checks


def check_table(checks: Sequence[tuple[int, BackendCheck]]) -> RenderableType:
    """Returns what was found, one server a line; the last column says whether all is well."""
    rows = [_row(server, found) for server, found in checks]
    return table(_COLUMNS, rows, right=(_COLUMNS[1], *_COLUMNS[6:9]))


def _row(server: int, found: BackendCheck) -> list[str]:
    return [
        found.backend,
        str(server),
        found.model,
        _yes(found.reachable),
        _yes(found.streams),
        _yes(found.reports_usage),
        f"{found.token_ratio:.3f}" if found.token_ratio else "",
        str(found.usage.cached_prompt_tokens) if found.reports_cached else "not said",
        f"{found.first_token_ms:.1f}" if found.pieces else "",
        "good" if found.passed else "FAILED",
    ]


def check_value(server: int, found: BackendCheck) -> dict[str, Any]:
    """Returns what was found as a plain value."""
    return {
        "backend": found.backend,
        "server": server,
        "model": found.model,
        "passed": found.passed,
        "reachable": found.reachable,
        "streams": found.streams,
        "reports_usage": found.reports_usage,
        "counts_alike": found.counts_alike,
        "token_ratio": found.token_ratio,
        "reports_cached": found.reports_cached,
        "cached_prompt_tokens": found.usage.cached_prompt_tokens,
        "first_token_ms": found.first_token_ms,
        "fault": found.complaint,
    }


def _yes(value: bool) -> str:
    return "yes" if value else "NO"
