"""`headrace worker`: works on runs of indexing jobs until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Annotated

import typer

from retrieval.cli.session import CLIENT, Session, with_session


@with_session(*CLIENT)
def worker(
    session: Session,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is left to do.")] = False,
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="Work on this run alone.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", help="Work on this tenant's runs alone.")] = "",
    attached: Annotated[
        bool, typer.Option("--attached", hidden=True, help="End when standard input does, as with the server.")
    ] = False,
) -> None:
    """Work on runs of indexing jobs that wait.

    It writes through the running server. With --once, and no server, it opens the data folder by itself. SIGTERM stops
    it: what it holds goes back at once, and another worker, or a later one, goes on from there.
    """
    asyncio.run(_work(session, once, run, tenant, attached))


async def _work(session: Session, once: bool, run_id: str, tenant: str, attached: bool) -> None:
    from retrieval.jobs.opening import Surroundings
    from retrieval.jobs.worker import work
    from retrieval.telemetry.log import configure_log

    settings = session.load().settings
    configure_log(settings.log.level, settings.log.format)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if attached:
        await loop.connect_read_pipe(lambda: _UntilEnd(stop), sys.stdin)
    # Who works off the queue and ends may hold the data folder meanwhile; who waits for work leaves it to a server.
    here = Surroundings(settings, session.server, session.api_key, foreground=once and not attached)
    await work(here, stop, once=once, run_id=run_id, tenant=tenant)


class _UntilEnd(asyncio.Protocol):
    """Sets an event when the other end of a pipe is gone."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop

    def eof_received(self) -> None:
        self._stop.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop.set()
