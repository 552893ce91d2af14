"""How a route is shown, and what asks the server for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest
from typer.testing import CliRunner

from headrace.v1 import common_pb2, retrieval_pb2, retrieval_pb2_grpc
from retrieval.cli.output import show
from retrieval.cli.route import commands, route_parts
from retrieval.cli.session import Surroundings
from retrieval.client import Client, retrieve_request
from retrieval.server.convert.plain import plain

REPLY = retrieval_pb2.ExplainRouteResponse(
    route=common_pb2.RouteReport(
        backend="house",
        reason="capability",
        complexity=0.734,
        rules=["sensitive"],
        candidates=[
            common_pb2.RouteCandidate(
                backend="house", score=4.2504, first_token_ms=310.4, total_ms=4310, cost=0.00125, context_tokens=1420
            ),
            common_pb2.RouteCandidate(backend="edge", excluded="window", score=9.5),
            common_pb2.RouteCandidate(backend="cloud", excluded="rule:sensitive"),
        ],
    ),
    context_tokens=1420,
)


class Explaining(retrieval_pb2_grpc.RetrievalServiceServicer):
    """A server that explains one route, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[retrieval_pb2.ExplainRouteRequest] = []

    async def ExplainRoute(self, request: Any, context: Any) -> retrieval_pb2.ExplainRouteResponse:  # noqa: N802
        self.asked.append(request)
        return REPLY


@pytest.fixture
async def served() -> AsyncIterator[tuple[Explaining, str]]:
    """Serves on a free port."""
    servicer, server = Explaining(), grpc.aio.server()  # type: ignore[abstract]
    retrieval_pb2_grpc.add_RetrievalServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield servicer, f"127.0.0.1:{port}"
    await server.stop(None)


def test_route_is_shown_with_every_candidate(capsys: pytest.CaptureFixture[str]) -> None:
    """The choice, why, and a line for each backend: predicted figures, or the rule that forbids it."""
    show(*route_parts(plain(REPLY)))
    said = capsys.readouterr().out
    lines = {line.split()[0]: line.split() for line in said.splitlines() if line.strip()}
    assert lines["chosen"][1:] == ["for", "what", "it", "is", "able", "to"]
    assert lines["complexity"][1] == "0.73"
    assert lines["house"][1:] == ["4.250", "310", "4,310", "0.001250", "1,420"]
    assert lines["edge"][-1] == "window"
    assert lines["cloud"] == ["cloud", "rule:sensitive"]


async def test_client_asks_for_the_route_of_a_question(served: tuple[Explaining, str]) -> None:
    """The request goes out whole, as Generate would get it."""
    servicer, target = served
    request = retrieval_pb2.GenerateRequest(retrieve=retrieve_request("docs", "why?"), backend="auto")
    async with Client(target) as client:
        assert await client.explain_route(request) == REPLY
    assert servicer.asked == [retrieval_pb2.ExplainRouteRequest(request=request)]


def test_explain_says_what_it_takes() -> None:
    """The command has the options of a question, and the router's choice by default."""
    surroundings = Surroundings({}, "", "")
    result = CliRunner().invoke(commands, ["explain", "--help"], obj=surroundings)
    assert result.exit_code == 0
    assert all(option in result.output for option in ("--collection", "--backend", "--json", "--where"))
