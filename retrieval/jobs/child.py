"""A worker as a child process of a server: started with its credential in the environment, ended for certain."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from indexers.jobs.state import Run

SERVER_VARIABLE = "HEADRACE_SERVER"
API_KEY_VARIABLE = "HEADRACE_API_KEY"


@dataclass(frozen=True, slots=True)
class WorkerLaunch:
    """How workers are started: the command without what is said of the run, and the environment of the server."""

    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def arguments(self, run: Run) -> tuple[str, ...]:
        """Returns the command for one run; a credential is never part of it, since everybody can list processes."""
        return (*self.command, "--once", "--attached", "--run", run.run_id, "--tenant", run.key.tenant)


@asynccontextmanager
async def worker_child(
    launch: WorkerLaunch, run: Run, address: str, api_key: str, grace_s: float
) -> AsyncIterator[Process]:
    """Runs a worker for the run while the block runs.

    However the block is left, the child has ended afterwards: it is asked to with SIGTERM, and killed after the grace.
    It has a session of its own, so that signals of a terminal do not reach it, and leaves by itself when its input
    ends, as it does when the server is killed.

    Raises:
        OSError: it cannot be started.
    """
    environ = {**launch.environ, SERVER_VARIABLE: address, API_KEY_VARIABLE: api_key}
    process = await asyncio.create_subprocess_exec(
        *launch.arguments(run), stdin=PIPE, stdout=DEVNULL, env=environ, start_new_session=True
    )
    try:
        yield process
    finally:
        await _end(process, grace_s)


async def _end(process: Process, grace_s: float) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(grace_s):
            await process.wait()
    except (TimeoutError, asyncio.CancelledError) as error:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(error, asyncio.CancelledError):
            raise
    finally:
        if process.stdin is not None:
            process.stdin.close()
