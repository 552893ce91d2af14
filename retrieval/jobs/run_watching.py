"""Tells watchers of runs when something has changed: one poll of the store a run, however many watch it.

Stores tell nobody of changes, so somebody has to ask. It is asked while there are watchers, twice a second at most; a
slow watcher misses states, never the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from indexers.errors import JobError
from indexers.jobs.state import Run
from indexers.jobs.store import JobStore

INTERVAL_S = 0.5


@dataclass
class _Watched:
    """A run that somebody watches."""

    poll: asyncio.Task[None] | None = None
    watchers: int = 0
    run: Run | None = None
    error: BaseException | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, run: Run | None, error: BaseException | None = None) -> None:
        self.run, self.error = run or self.run, error
        # Those who wait have this event; who comes later waits for the next one.
        self.changed.set()
        self.changed = asyncio.Event()


class RunWatches:
    """The watched runs of one server."""

    def __init__(self, store: JobStore, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """`pause` waits between two polls."""
        self._store = store
        self._pause = pause
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._ended: Exception | None = None

    @property
    def polled(self) -> int:
        """How many runs are polled now."""
        return len(self._watched)

    def end(self, error: Exception) -> None:
        """Lets all watchers go with the error, and those who come later too: a server that stops waits for no run."""
        self._ended = error
        for watched in self._watched.values():
            watched.tell(None, error)

    async def watch(self, tenant: str, run_id: str) -> AsyncGenerator[Run, None]:
        """Yields the run as it is, and again whenever it has changed; ends with its end.

        Raises:
            RunNotFound: there is no such run.
            JobStoreUnavailable: the store cannot be asked any more.
        """
        async with self._joined(tenant, run_id) as watched:
            shown: Run | None = None
            while shown is None or not shown.state.ended:
                changed = watched.changed
                if watched.error is not None:
                    raise watched.error
                if watched.run is None or watched.run == shown:
                    await changed.wait()
                    continue
                shown = watched.run
                yield shown

    @asynccontextmanager
    async def _joined(self, tenant: str, run_id: str) -> AsyncIterator[_Watched]:
        if self._ended is not None:
            raise self._ended
        key = (tenant, run_id)
        watched = self._watched.get(key)
        if watched is None or watched.error is not None:
            watched = self._watched[key] = _Watched()
            watched.poll = asyncio.create_task(self._poll(tenant, run_id, watched))
        watched.watchers += 1
        try:
            yield watched
        finally:
            watched.watchers -= 1
            if not watched.watchers:
                if self._watched.get(key) is watched:
                    del self._watched[key]
                await _ended(watched.poll)

    async def _poll(self, tenant: str, run_id: str, watched: _Watched) -> None:
        while True:
            try:
                run = await self._store.get_run(tenant, run_id)
            except JobError as error:
                watched.tell(None, error)
                return
            if run != watched.run:
                watched.tell(run)
            if run.state.ended:
                return
            await self._pause(INTERVAL_S)


async def _ended(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
