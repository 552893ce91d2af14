"""What the health service says: SERVING while everything is loaded and every encoder thread lives.

A thread that the system gives no replacement for takes the server out of rotation, and callers elsewhere, until one can
be started: that is tried again every second, since nobody calls a server that says NOT_SERVING.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import structlog
from grpc_health.v1 import health, health_pb2

from encoders.workers import Workers
from retrieval.server.beside import beside

_TRY_AGAIN_S = 1.0
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_SERVING = health_pb2.HealthCheckResponse.SERVING
_log = structlog.get_logger("headrace")


class Health:
    """Keeps the status of the server and of each of its services."""

    def __init__(self, services: Sequence[str]) -> None:
        self.servicer = health.aio.HealthServicer()
        self._names = ("", *services)

    async def set(self, serving: bool) -> None:
        """Says the same of all services."""
        for name in self._names:
            await self.servicer.set(name, _SERVING if serving else _NOT_SERVING)

    async def stop(self) -> None:
        """Says NOT_SERVING from now on, whatever is set afterwards."""
        await self.servicer.enter_graceful_shutdown()

    @asynccontextmanager
    async def following(self, workers: Workers) -> AsyncIterator[None]:
        """Says SERVING while the body runs and every post has its thread."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def tell(healthy: bool) -> None:
            # The loop of a server that has stopped has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(changed.set)

        workers.watch(tell)
        said = workers.healthy
        await self.set(said)
        async with beside(self._follow(workers, changed, said)):
            yield

    async def _follow(self, workers: Workers, changed: asyncio.Event, said: bool) -> None:
        while True:
            if workers.healthy == said:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), None if said else _TRY_AGAIN_S)
            changed.clear()
            if not workers.healthy:
                workers.heal()
            if workers.healthy != said:
                said = workers.healthy
                await self.set(said)
                report = _log.info if said else _log.error
                report("encoder_threads_complete" if said else "encoder_threads_missing")
