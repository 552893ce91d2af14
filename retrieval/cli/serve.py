"""`headrace serve`: runs the server until it is told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrieval.cli.session import Session, with_session

if TYPE_CHECKING:
    from retrieval.jobs.child import WorkerLaunch


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
    run_server(lambda: session.load(given), _workers(session))


def _workers(session: Session) -> WorkerLaunch:
    """Returns how workers of jobs are started: this program, with the same settings."""
    import sys

    from retrieval.jobs.child import WorkerLaunch

    options = ["--config", str(session.config)] if session.config is not None else []
    options += ["--data", str(session.data)] if session.data is not None else []
    for assignment in session.sets:
        options += ["--set", assignment]
    command = (sys.executable, "-m", "retrieval.cli.main", "worker", *options)
    return WorkerLaunch(command, session.surroundings.environ)
