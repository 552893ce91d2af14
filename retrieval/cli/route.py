"""`headrace route`: shows which backend would answer a question now, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.collections import call
from retrieval.cli.documents import Collection, Where
from retrieval.cli.output import pairs, print_json, show, table
from retrieval.cli.retrieve import Question, TopK
from retrieval.cli.session import CLIENT, Session, with_session
from retrieval.server.convert.plain import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

_REASONS = {
    "named": "named by the request or the settings",
    "only": "the only one that may answer",
    "latency": "for its predicted time",
    "cost": "for its predicted price",
    "capability": "for what it is able to",
}

commands = typer.Typer(help="See how requests find their backend.", no_args_is_help=True)


@commands.callback()
def _root() -> None:
    """Keeps `explain` a command of its own while it is the only one."""


@commands.command("explain")
@with_session(*CLIENT)
def explain(
    session: Session,
    question: Question,
    collection: Collection,
    where: Where = "",
    top_k: TopK = None,
    backend: Annotated[str, typer.Option("--backend", help="A backend, or `auto` for the router's choice.")] = "auto",
) -> None:
    """Show which backend would answer a question now, and why; nothing is generated."""
    from headrace.v1.retrieval_pb2 import GenerateRequest
    from retrieval.client import retrieve_request

    retrieve = retrieve_request(collection, question, top_k=top_k, filter=where or None)
    request = GenerateRequest(retrieve=retrieve, backend=backend)
    reply = plain(call(session, lambda client: client.explain_route(request)))
    if session.json:
        print_json(reply)
    else:
        show(*route_parts(reply))


def route_parts(reply: dict[str, Any]) -> list[RenderableType | str]:
    """Returns a plain `ExplainRouteResponse` as the choice, what it rests on, and the backends in a table."""
    route = reply["route"]
    facts = (
        ("backend", route["backend"]),
        ("chosen", _REASONS.get(route["reason"], route["reason"])),
        ("complexity", f"{route['complexity']:.2f} of 1"),
        ("context", f"{reply['context_tokens']:,} tokens"),
        ("rules", ", ".join(route["rules"]) or "none apply"),
    )
    return [pairs(facts), candidate_table(route["candidates"])]


def candidate_table(candidates: list[dict[str, Any]]) -> RenderableType:
    """Returns plain candidates, best first, with what is predicted of each and why some may not answer."""
    numbers = ["score", "first token ms", "total ms", "cost", "context"]
    rows = [(each["backend"], *_predicted(each), each["excluded"]) for each in candidates]
    return table(["backend", *numbers, "excluded"], rows, right=numbers)


def _predicted(candidate: dict[str, Any]) -> tuple[str, ...]:
    if candidate["excluded"].startswith("rule:"):
        return ("", "", "", "", "")  # nothing was predicted
    return (
        f"{candidate['score']:.3f}",
        f"{candidate['first_token_ms']:,.0f}",
        f"{candidate['total_ms']:,.0f}",
        f"{candidate['cost']:.6f}",
        f"{candidate['context_tokens']:,}",
    )
