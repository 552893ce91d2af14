"""`headrace cache`: shows how the caches fare, forgets what is in them, and explains an answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.collections import call
from retrieval.cli.documents import Collection
from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.output import pairs, print_json, show, table
from retrieval.cli.reuse import age
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}

commands = typer.Typer(help="Look into the caches of a server, and empty them.", no_args_is_help=True)


@commands.command("stats")
@with_session(*CLIENT)
def stats(session: Session) -> None:
    """Show how the caches fare, and what was learned about questions in other words."""
    reply = plain(call(session, lambda client: client.cache_stats()))
    if session.json:
        print_json(reply)
    else:
        show(*stats_parts(reply))


@commands.command("invalidate")
@with_session(*CLIENT)
def invalidate(
    session: Session,
    collection: Annotated[
        str, typer.Option("--collection", "-c", metavar="NAME", help="Only what belongs to this collection.")
    ] = "",
    document: Annotated[
        str, typer.Option("--document", metavar="ID", help="Only what was made from this document of the collection.")
    ] = "",
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Only what is older: 90s, 15m, 2h, 7d.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Forget everything of the tenant.")] = False,
) -> None:
    """Forget what is cached for the tenant of the key, here and in the shared tier."""
    if not (collection or document or older_than or yes):
        raise WrongUse(
            "this forgets everything of the tenant; narrow it with --collection or --older-than, or add --yes"
        )
    if document and not collection:
        raise WrongUse("--document needs --collection, the document's")
    older_than_s = seconds(older_than) if older_than else None
    reply = plain(
        call(
            session,
            lambda client: client.invalidate_cache(collection, document_id=document, older_than_s=older_than_s),
        )
    )
    if session.json:
        print_json(reply)
    else:
        show(f"forgot {reply['memory']:,} values of the server and {reply['shared']:,} of the shared tier")
    if not reply["shared_available"]:
        raise WorkFailed("the shared tier could not be asked; what is in it ends by its time to live")


@commands.command("explain")
@with_session(*CLIENT)
def explain(
    session: Session,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The answer's key, as `headrace ask` shows it.")],
    collection: Collection,
) -> None:
    """Show a cached answer, and whether the collection still holds what it was made from."""
    answer = plain(call(session, lambda client: client.explain_cache_key(collection, key)))
    if session.json:
        print_json(answer)
        return
    place = "the shared tier" if answer["tier"] == "shared" else "this server"
    made_by = " ".join(filter(None, (answer["backend"], answer["model"])))
    facts = (("question", answer["question"]), ("age", age(answer["age_ms"])), ("in", place), ("made by", made_by))
    rows = [
        (
            str(rank),
            "cited" if one["cited"] else "",
            "as it was" if one["unchanged"] else "changed or gone",
            one["document_id"],
            one["chunk_id"],
        )
        for rank, one in enumerate(answer["passages"], 1)
    ]
    show(pairs(facts), f"\n{answer['text']}", table(["", "", "now", "document", "chunk"], rows, right=[""]))


def stats_parts(reply: dict[str, Any]) -> list[RenderableType | str]:
    """Returns plain cache statistics as tables."""
    counts = ["entries", "MiB", "of MiB", "hits", "misses", "evicted"]
    rows = [
        (
            one["cache"],
            f"{one['entries']:,}",
            _mib(one["used_bytes"]),
            _mib(one["capacity_bytes"]),
            *(f"{one[name]:,}" for name in ("hits", "misses", "evictions")),
        )
        for one in reply["caches"]
    ]
    parts: list[RenderableType | str] = [table(["cache", *counts], rows, right=counts)]
    if (shared := reply["shared"]) is not None:
        named = (name for name in shared if name not in {"kind", "available"})
        said = ", ".join(f"{shared[name]:,} {name.replace('_', ' ')}" for name in named)
        parts.append(f"shared tier {shared['kind']}: {'available' if shared['available'] else 'unavailable'}; {said}")
    if reply["risks"]:
        parts.append(_risk_table(reply["risks"]))
    return parts


def seconds(text: str) -> float:
    """Reads an age such as `15m`; a bare number is in seconds.

    Raises:
        WrongUse: it is none.
    """
    unit = text[-1:].lower()
    number, factor = (text[:-1], _UNITS_S[unit]) if unit in _UNITS_S else (text, 1.0)
    try:
        found = float(number) * factor
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= 0.0):
        raise WrongUse(f"--older-than {text!r} is no age; write it like 90s, 15m, 2h or 7d")
    return found


def _risk_table(risks: list[dict[str, Any]]) -> RenderableType:
    counts = ["served", "comparisons", "disagreed", "evidence"]
    rows = [
        (
            one["collection"],
            *(f"{one[name]:,}" for name in ("served", "labels", "errors", "evidence")),
            "yes" if one["serving"] else "not yet",
        )
        for one in risks
    ]
    return table(["questions in other words", *counts, "may serve"], rows, right=counts)


def _mib(count: int) -> str:
    return f"{count / 2**20:,.1f}"
