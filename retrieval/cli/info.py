"""`headrace info`: what a server runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from retrieval.cli.connecting import connect
from retrieval.cli.output import pairs, print_json, show, table
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.convert.plain import plain

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
            one["revision"],
            str(one["dim"] or ""),
            str(one["max_tokens"]),
            f"{one['file']} ({one['precision']})" if one["file"] else "",
        )
        for one in reply["models"]
    ]
    measured = [(one["role"], _checked(one), _cut(one), _cost(one)) for one in reply["models"]]
    columns = ["role", "model", "revision", "dim", "tokens", "file"]
    return [
        pairs(facts),
        table(columns, models, right=columns[3:5]),
        table(["role", "checked on this machine", "computed", "a token costs"], measured),
        collection_table(reply["collections"]),
    ]


def _checked(model: dict[str, Any]) -> str:
    check = model["check"]
    if check is None:
        return "no references"
    alike = f"cosine from {check['lowest_cosine']:.3f}" if check["lowest_cosine"] else f"r {check['pearson']:.3f}"
    speed = f", int8 {model['int8_speed']:.1f} times as fast" if model["int8_speed"] else ""
    return f"{alike}, rank agreement {check['rank_agreement']:.2f}, {check['reference_count']} references{speed}"


def _cut(model: dict[str, Any]) -> str:
    pieces = model["pieces"]
    if pieces is None or not pieces["budget_tokens"]:
        return "one text a run"
    return f"batches of {pieces['budget_tokens']} tokens, of texts up to {pieces['longest_tokens']}"


def _cost(model: dict[str, Any]) -> str:
    """Says the cost seen at work, then the measured one by length."""
    seen = [f"{model['ns_per_token'] / 1000:.0f} µs lately"] if model["ns_per_token"] else []
    costs = (model["pieces"] or {"costs": []})["costs"]
    by_length = [f"{one['ns_per_token'] / 1000:.0f} µs in {one['tokens']} tokens" for one in costs if one["texts"] == 1]
    return ", ".join(seen + by_length) or "not measured yet"
