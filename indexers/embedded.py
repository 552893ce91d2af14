"""A collection in this process: the record is the truth, a generation and a delta in memory answer searches.

Here is only what a caller sees. `Writing` changes the state, `Building` makes generations, `ServingState` is searched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from encoders.term_statistics import TermStatistics
from encoders.types import TokenCodec
from indexers.building import Building
from indexers.checks import MAX_PAGE_SIZE, check_query, check_token_query
from indexers.filters import Filter
from indexers.generation import Generations
from indexers.homes import GENERATIONS, RECORD
from indexers.late import no_scores, scores_of
from indexers.matching import matches
from indexers.options import IndexOptions
from indexers.page_token import read_page_token, write_page_token
from indexers.record_read import RecordReader
from indexers.schema import coerce_delete_filter, coerce_filter
from indexers.serving import ServingState
from indexers.shard import candidates_of, keys_of
from indexers.types import (
    Candidates,
    CollectionDefinition,
    Counts,
    Document,
    DocumentPage,
    EncodedDocument,
    Epoch,
    FieldType,
    Passage,
    SearchQuery,
    StoredDocument,
    WriteResult,
)
from indexers.writing import Writing

_SCORED_AT_ONCE = 64  # passages; about a millisecond, and more would hold up other requests

T = TypeVar("T")


class EmbeddedIndex:
    """One embedded collection, opened from its folder; reads the whole delta, so make it off the event loop's time."""

    def __init__(self, folder: Path, options: IndexOptions, codec: TokenCodec | None = None) -> None:
        record, generations = folder / RECORD, Generations(folder / GENERATIONS)
        generations.sweep()
        self._writing = Writing(record, generations, options)
        self._building = Building(record, generations, self._writing, options)
        self._passages = RecordReader(record)  # the event loop's
        self._scans = RecordReader(record)  # the scan thread's
        self._scan_thread = ThreadPoolExecutor(1, thread_name_prefix="record-scan")
        self._codec = codec
        self._closed = False

    @property
    def definition(self) -> CollectionDefinition:
        """What the collection promises."""
        return self._writing.state.definition

    @property
    def epoch(self) -> Epoch:
        """The state that searches see."""
        return self._writing.state.epoch

    async def current_epoch(self) -> Epoch:
        """Returns the state that searches see: no other process writes."""
        return self.epoch

    @property
    def statistics(self) -> TermStatistics:
        """The frequencies that the stored weights were made with."""
        return self._writing.state.statistics

    async def search(self, query: SearchQuery, filter: Filter | None) -> Candidates:
        """Searches generation and delta as one; never suspends."""
        state = self._writing.state
        check_query(query, state.definition.dim)
        return candidates_of(state.search(query, filter))

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Passage]:
        """Returns passages of the state that searches see; never suspends."""
        return self._passages.passages(chunk_ids, self.epoch.write_sequence)

    async def late_scores(self, query: NDArray[np.float32], passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Scores the passages of the state that searches see; suspends for many passages only."""
        state = self._writing.state
        if not len(query):
            return np.zeros(len(passages), dtype=np.float32)
        if self._codec is None or not state.definition.code_bytes:
            return no_scores(len(passages))
        check_token_query(query, self._codec.dim)
        pieces = state.codes(keys_of(passages))
        if len(passages) <= _SCORED_AT_ONCE:
            return scores_of(query, pieces, self._codec)
        return await asyncio.to_thread(scores_of, query, pieces, self._codec)

    async def upsert(self, documents: Sequence[EncodedDocument], since: int | None = None) -> WriteResult:
        """Replaces the documents, all of them in one durable transaction."""
        superseded: frozenset[str] = frozenset()
        if documents:
            superseded = await self._writing.replace(documents, since)
            self._building.start_when_needed()
        return WriteResult(self.epoch, superseded)

    async def delete(self, document_ids: Sequence[str], since: int | None = None) -> int:
        """Deletes by id in one durable transaction."""
        removed = await self._writing.delete(list(dict.fromkeys(document_ids)), since)
        self._building.start_when_needed()
        return removed

    async def delete_where(self, filter: Filter) -> int:
        """Finds and deletes what passes the filter in one durable transaction."""
        fields = self.definition.fields
        coerced = coerce_delete_filter(filter, fields)
        removed = await self._writing.delete_where(lambda metadata: matches(coerced, metadata, fields))
        self._building.start_when_needed()
        return removed

    async def look_up(self, document_ids: Sequence[str]) -> dict[str, StoredDocument]:
        """Returns what is stored under each id that is there."""
        sequence = self.epoch.write_sequence
        return await self._scan(lambda: self._scans.stored(document_ids, sequence))

    async def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        """Returns (id, source URI) of the owner's documents with greater ids, by id."""
        return await self._scan(lambda: self._scans.owned(owner, after, limit))

    async def chunk_ids(self, document_id: str) -> list[str]:
        """Returns the ids of the document's chunks in order."""
        sequence = self.epoch.write_sequence
        return await self._scan(lambda: self._scans.chunk_ids(document_id, sequence))

    async def get_document(self, document_id: str) -> Document | None:
        """Returns a document with its canonical text, None when there is none."""
        sequence = self.epoch.write_sequence
        return await self._scan(lambda: self._scans.document(document_id, sequence))

    async def list_documents(self, page_size: int, page_token: str) -> DocumentPage:
        """Lists documents by id; a page holds 1 to 1,000 of them."""
        limit = min(max(page_size, 1), MAX_PAGE_SIZE)
        after, sequence = read_page_token(page_token), self.epoch.write_sequence
        found = await self._scan(lambda: self._scans.summaries(after, limit + 1, sequence))
        more = len(found) > limit
        return DocumentPage(tuple(found[:limit]), write_page_token(found[limit - 1].document_id) if more else "")

    async def count(self, filter: Filter | None) -> Counts:
        """Counts what passes; without a filter nothing is read."""
        state = self._writing.state
        if filter is None:
            return state.counts
        coerced = coerce_filter(filter, state.definition.fields)
        return await self._scan(lambda: self._count(coerced, state))

    async def sample_texts(self, count: int) -> list[str]:
        """Returns the texts of up to so many chunks, chosen by chance."""
        return await self._scan(lambda: self._scans.sample_texts(count))

    async def redefine(self, fields: dict[str, FieldType], description: str) -> None:
        """Changes the schema and the description; stored metadata is coerced to newly declared fields.

        Raises:
            TypeMismatch: a stored value cannot become the new type; nothing was changed.
        """
        await self._writing.redefine(fields, description)
        self._building.start_when_needed()

    def needs_build(self) -> bool:
        """Tells whether enough has changed since the generation for a new one to pay."""
        return self._building.needed()

    async def build(self) -> Epoch:
        """Folds all writes so far into a new generation; cancelling stops the child process."""
        await self._building.build()
        return self.epoch

    async def build_if_stale(self) -> None:
        """Builds when a tenth of the generation has changed: what is quick to load and to search needs none."""
        await self._building.build_if_stale()

    async def retire(self, change_over: Callable[[], Awaitable[None]]) -> None:
        """Lets the collection be served from elsewhere; requests that have this index may go on reading."""
        await self._writing.retire(change_over)

    async def close(self) -> None:
        """Stops builds, lets started writes finish, and closes the files."""
        if self._closed:
            return
        self._closed = True
        await self._building.close()
        await self._writing.close()
        await asyncio.to_thread(self._scan_thread.shutdown)
        self._scans.close()
        self._passages.close()

    async def _scan(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._scan_thread, call)

    def _count(self, filter: Filter, state: ServingState) -> Counts:
        documents, chunks = 0, 0
        for metadata, chunk_count in self._scans.metadata(state.epoch.write_sequence):
            if matches(filter, metadata, state.definition.fields):
                documents, chunks = documents + 1, chunks + chunk_count
        return Counts(documents, chunks)
