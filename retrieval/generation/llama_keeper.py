"""Keeps one child process running while it is wanted: started when first asked for, and again when it has died."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from retrieval.errors import BackendUnavailable
from retrieval.generation.backend import Backend
from retrieval.generation.llama_child import Child, NotServing, serving_child
from retrieval.generation.llama_launch import Launch

_log = structlog.get_logger("headrace")

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0
_CLOSED = "it is closed"


class ChildKeeper:
    """Gives a client of the running child. The second death in a row, and each further one, brings a longer pause."""

    def __init__(
        self, name: str, command: Sequence[str], launch: Launch, open_client: Callable[[Child], Backend]
    ) -> None:
        self._name = name
        self._command = command
        self._launch = launch
        self._open_client = open_client
        self._life: asyncio.Task[None] | None = None
        self._client: asyncio.Future[Backend] | None = None
        self._closed = False
        self._deaths = 0
        self._not_before_s = 0.0

    async def client(self) -> Backend:
        """Waits until the child serves; starts one when there is none.

        Raises:
            BackendUnavailable: it does not start, or has died so often that it pauses.
        """
        self.start()
        assert self._client is not None
        # Others wait for the same one: who leaves must not end it.
        return await asyncio.shield(self._client)

    def start(self) -> None:
        """Begins to load, unless that was begun before.

        Raises:
            BackendUnavailable: it has died so often that it pauses, or it is closed.
        """
        if self._life is not None and not self._life.done():
            return
        pause_s = self._not_before_s - time.monotonic()
        if self._closed or pause_s > 0:
            reason = _CLOSED if self._closed else "its process has died several times and pauses"
            raise BackendUnavailable(self._name, reason, transient=not self._closed, retry_after_s=max(0.0, pause_s))
        self._client = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(self._client))

    def worked(self) -> None:
        """Notes that the child does its work: what happened before counts no more."""
        self._deaths = 0

    async def close(self) -> None:
        """Ends the child, and what waits for it."""
        self._closed = True
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)

    async def _live(self, ready: asyncio.Future[Backend]) -> None:
        """Starts one child, hands out its client, and stays until it ends."""
        fault = BackendUnavailable(self._name, _CLOSED, transient=False)
        began_s = time.monotonic()
        try:
            async with serving_child(self._command, self._launch) as child:
                client = self._open_client(child)
                try:
                    ready.set_result(client)
                    _log.info("llama_serves", backend=self._name, pid=child.pid, load_s=time.monotonic() - began_s)
                    code, tail = await child.wait()
                finally:
                    await client.close()
            _log.error("llama_died", backend=self._name, exit_code=code, output=tail)
            self._died()
        except NotServing as error:
            _log.error("llama_failed", backend=self._name, fault=error.fault, output=error.output)
            self._died()
            fault = BackendUnavailable(self._name, error.fault, retry_after_s=self._pause_s())
        finally:
            if not ready.done():
                ready.set_exception(fault)
                ready.exception()  # seen: there may be nobody who waits

    def _died(self) -> None:
        self._deaths += 1
        self._not_before_s = time.monotonic() + self._pause_s()

    def _pause_s(self) -> float:
        if self._deaths < 2:
            return 0.0
        return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._deaths - 2, 16))
