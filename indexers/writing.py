"""The write side of an embedded collection: a thread commits and prepares the next serving state, the loop swaps it in.

So no search waits for a disk, none sees half a write, and there is one place that changes the state. A write whose
caller leaves goes on to its end: what is committed is also served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from encoders.cpu import lower_priority_of_this_thread
from indexers.checks import check_documents
from indexers.errors import CollectionMoved, CollectionNotFound, IndexCorrupt
from indexers.generation import Generations
from indexers.options import IndexOptions
from indexers.owned import OwnedTasks
from indexers.record_write import RecordWriter, Written
from indexers.schema import coerce_document
from indexers.serving import ServingState
from indexers.serving_load import load_state
from indexers.types import CollectionDefinition, EncodedDocument, FieldType, Metadata

T = TypeVar("T")

_PURGE_DOCUMENTS = 200  # a transaction


class Writing:
    """Owns a collection's serving state and everything that changes it."""

    def __init__(self, record: Path, generations: Generations, options: IndexOptions) -> None:
        self._record = record
        self._generations = generations
        self._options = options
        self._state = load_state(record, generations.current(), options)
        self._writer = RecordWriter(record)
        self._thread = ThreadPoolExecutor(1, "record-write", initializer=lower_priority_of_this_thread)
        self._lock = asyncio.Lock()
        self._started = OwnedTasks()
        self._closed = False
        self._retired = False

    @property
    def definition(self) -> CollectionDefinition:
        """What the collection promises."""
        return self._state.definition

    @property
    def state(self) -> ServingState:
        """The state that searches see.

        Raises:
            CollectionNotFound: the collection was closed, so it was deleted or is being left.
        """
        if self._closed:
            raise CollectionNotFound(self._state.definition.key.collection)
        return self._state

    async def replace(self, documents: Sequence[EncodedDocument], since: int | None) -> frozenset[str]:
        """Replaces documents and returns the ids of those that were left alone.

        Raises here and in all that changes: CollectionMoved, when it is served from elsewhere.
        """
        return await self._change(lambda: self._replace(documents, since))

    async def delete(self, document_ids: Sequence[str], since: int | None) -> int:
        """Deletes documents by id and returns how many were there."""
        return await self._change(lambda: self._removed(self._writer.delete(document_ids, since)))

    async def delete_where(self, passes: Callable[[Metadata], bool]) -> int:
        """Deletes the documents whose metadata passes and returns how many there were."""
        return await self._change(lambda: self._removed(self._writer.delete_where(passes)))

    async def redefine(self, fields: dict[str, FieldType], description: str) -> None:
        """Changes the definition; under new fields the collection is served from memory until the next build."""
        old = self.state
        await self._change(lambda: self._redefine(fields, description))
        self._close_replaced(old)

    async def publish(self, built: Path, number: int) -> None:
        """Serves from a generation that was built, and forgets what only the one before it needed.

        Raises:
            IndexCorrupt: what was built cannot be read, or is for an older schema; the one before it goes on serving.
        """
        old = self.state
        await self._change(lambda: self._publish(built, number))
        self._close_replaced(old)
        await self._run(self._generations.sweep)
        while await self._run(lambda: self._writer.purge(self._state.generation_sequence, _PURGE_DOCUMENTS)):
            pass

    async def retire(self, change_over: Callable[[], Awaitable[None]]) -> None:
        """Lets the collection be served from elsewhere: no write runs meanwhile, and none is taken after it.

        It goes on to its end even when the caller leaves. When it fails, writes go on here.
        """
        await self._started.to_the_end(self._retire(change_over))

    async def close(self) -> None:
        """Lets started writes finish, then closes the files."""
        self._closed = True
        await self._started.drain()
        await asyncio.to_thread(self._thread.shutdown)
        self._writer.close()
        if self._state.generation is not None:
            self._state.generation.close()

    async def _change(self, change: Callable[[], tuple[ServingState, T]]) -> T:
        """Runs one change to its end, even when the caller does not wait for it."""
        return await self._started.to_the_end(self._swap(change))

    async def _retire(self, change_over: Callable[[], Awaitable[None]]) -> None:
        async with self._lock:
            await change_over()
            self._retired = True

    async def _swap(self, change: Callable[[], tuple[ServingState, T]]) -> T:
        async with self._lock:
            if self._retired:
                raise CollectionMoved(self._state.definition.key.collection)
            self._state, result = await self._run(change)
            return result

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _close_replaced(self, old: ServingState) -> None:
        if old.generation is not None and self._state.generation_sequence != old.generation_sequence:
            old.generation.close()

    def _replace(self, documents: Sequence[EncodedDocument], since: int | None) -> tuple[ServingState, frozenset[str]]:
        definition = self._state.definition
        check_documents(documents, definition.dim, definition.code_bytes)
        coerced = [coerce_document(document, definition.fields) for document in documents]
        written = self._writer.replace(coerced, since)
        kept = [one for one in coerced if one.document.document_id not in written.superseded]
        return self._state.after(written, kept), written.superseded

    def _removed(self, written: Written) -> tuple[ServingState, int]:
        return self._state.after(written, ()), written.removed_documents

    def _redefine(self, fields: dict[str, FieldType], description: str) -> tuple[ServingState, None]:
        definition = self._writer.redefine(fields, description)
        if definition.fields == self._state.definition.fields:
            return replace(self._state, definition=definition), None
        return load_state(self._record, self._generations.current(), self._options), None

    def _publish(self, built: Path, number: int) -> tuple[ServingState, None]:
        place = self._generations.place(built, number)
        state = load_state(self._record, place, self._options)
        if state.generation_sequence < 0:
            raise IndexCorrupt(str(place), "the new generation does not open or fit the schema; build again")
        self._generations.point_to(number)
        return state, None
