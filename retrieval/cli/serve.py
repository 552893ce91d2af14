"""`headrace serve`: runs the server until it is told to stop."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from retrieval.cli.session import Session, with_session


@with_session("config", "data", "sets")
def serve(
    session: Session,
    host: Annotated[str | None, typer.Option("--host", help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port; 0 takes a free one.")] = None,
) -> None:
    """Run the server.

    SIGTERM stops it, SIGHUP makes it read its settings again.
    """
    from retrieval.server.serve import run_server

    flags: dict[str, Any] = {"server.host": host, "server.port": port}
    given = {path: value for path, value in flags.items() if value is not None}
    run_server(lambda: session.load(given))
