"""`headrace info`: what a server runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from retrieval.cli.connecting import connect
from retrieval.cli.output import pairs, print_json, show, table
from retrieval.cli.plain import plain
from retrieval.cli.session import CLIENT, Session, with_session

if TYPE_CHECKING:
    from rich.console import RenderableType


@with_session(*CLIENT)
def info(session: Session) -> None:
    """Show what the server runs: version, models with their measured cost, collections, backends."""
    reply = asyncio.run(_info(session))
    if session.json:
        print_json(reply)
    else:
        show(*_parts(reply))


async def _info(session: Session) -> dict[str, Any]:
    async with connect(session) as client:
        reply: dict[str, Any] = plain(await client.info())
        return reply


def _parts(reply: dict[str, Any]) -> list[RenderableType]:
    from retrieval.cli.collections import collection_table

    facts = (
        ("version", reply["version"]),
        ("up", f"{reply['uptime_s']:.0f} s"),
        ("encoder workers", str(reply["encoder_workers"])),
        ("backends", ", ".join(reply["backends"])),
    )
    models = [
        (
            one["role"],
            one["model"],
            str(one["dim"] or ""),
            str(one["max_tokens"]),
            f"{one['ns_per_token'] / 1000:.0f} µs" if one["ns_per_token"] else "not measured yet",
        )
        for one in reply["models"]
    ]
    columns = ["role", "model", "dim", "tokens", "a token costs"]
    return [pairs(facts), table(columns, models, right=columns[2:]), collection_table(reply["collections"])]
