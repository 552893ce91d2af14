"""When a new generation is built, and by whom it is awaited: one build at a time, searches and writes go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from indexers.builder import run_build
from indexers.errors import BuildFailed, IndexerError
from indexers.generation import Generations
from indexers.options import IndexOptions
from indexers.owned import OwnedTasks
from indexers.writing import Writing

_log = structlog.get_logger()


class Building:
    """Builds the generations of one collection."""

    def __init__(self, record: Path, generations: Generations, writing: Writing, options: IndexOptions) -> None:
        self._record = record
        self._generations = generations
        self._writing = writing
        self._options = options
        self._lock = asyncio.Lock()
        self._started = OwnedTasks()
        self._automatic: asyncio.Task[None] | None = None
        self._failed_at_chunks = 0

    def needed(self) -> bool:
        """Tells whether enough has changed since the generation for a new one to pay."""
        state = self._writing.state
        share = self._options.build_after_share * state.generation_chunks
        return state.changed_chunks > max(self._options.build_after_chunks, share) + self._failed_at_chunks

    def start_when_needed(self) -> None:
        """Starts a build in the background when one pays and none is running."""
        idle = self._automatic is None or self._automatic.done()
        if self._options.build_automatically and idle and self.needed():
            self._automatic = self._started.start(self._build_while_needed())

    async def build(self) -> None:
        """Builds a generation that includes every write so far; cancelling stops the child process.

        Raises:
            BuildFailed: the generation before it goes on serving.
        """
        closed = BuildFailed(self._name(), "the collection was closed meanwhile")
        await self._started.while_wanted(self._build(), closed)

    async def build_if_stale(self) -> None:
        """Builds when so large a share has changed, however small the collection is.

        Raises:
            BuildFailed: the generation before it goes on serving.
        """
        state = self._writing.state
        if state.changed_chunks > self._options.build_after_share * state.generation_chunks:
            await self.build()

    async def close(self) -> None:
        """Stops what is being built."""
        await self._started.cancel()

    async def _build(self) -> None:
        async with self._lock:
            fields = None
            while fields != self._writing.state.definition.fields:  # a changed schema makes what was built useless
                state = self._writing.state
                if state.generation_sequence == state.epoch.write_sequence:
                    return
                fields, number = state.definition.fields, state.epoch.generation + 1
                scratch = await asyncio.to_thread(self._generations.scratch)
                await run_build(self._name(), self._record, scratch, number, self._options)
            await self._writing.publish(scratch, number)
            self._failed_at_chunks = 0

    async def _build_while_needed(self) -> None:
        while self.needed():
            try:
                await self._build()
            except IndexerError as error:
                self._failed_at_chunks = self._writing.state.changed_chunks
                _log.error("build_failed", collection=self._name(), reason=str(error))

    def _name(self) -> str:
        return self._writing.definition.key.collection
