"""Reads one leased item: makes it a local file, has it parsed, and hands on what comes out a batch at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.jobs.running.parts import RunParts
from indexers.jobs.state import ItemLease, ItemOutcome, ItemState
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.sources.source import ItemRef

BATCH_DOCUMENTS = 64
BATCH_CHARACTERS = 64_000  # about 80 chunks


@dataclass(frozen=True, slots=True)
class ItemFailed(Exception):
    """The item gives nothing; `outcome` says what becomes of it, but for how long to wait."""

    outcome: ItemOutcome


class ItemReader:
    """Reads items of one job."""

    def __init__(self, parts: RunParts, options: ParseOptions) -> None:
        self._parts = parts
        self._options = options

    async def read(self, lease: ItemLease) -> AsyncIterator[list[ParsedDocument | ParseFailure]]:
        """Yields the item's documents, and the rows of it that give none; at least one list, which may be empty.

        Raises:
            ItemFailed: the item as a whole cannot be read, or is left out.
        """
        reading = _Reading(self._parts, lease, self._options)
        try:
            await asyncio.to_thread(reading.begin)
            while batch := await asyncio.to_thread(reading.take):
                yield batch
        except SourceUnavailable as error:
            retry = ItemOutcome(ItemState.QUEUED, error.reason, "unavailable", error.retry_after_s)
            raise ItemFailed(retry) from error
        except ItemGone as error:
            raise ItemFailed(ItemOutcome(ItemState.SKIPPED, error.reason, "gone")) from error
        except ItemUnreadable as error:
            raise ItemFailed(ItemOutcome(ItemState.FAILED, error.reason, error.kind)) from error
        finally:
            await asyncio.shield(asyncio.to_thread(reading.end))


class _Reading:
    """One item while it is read; each method runs in a worker thread, one at a time."""

    def __init__(self, parts: RunParts, lease: ItemLease, options: ParseOptions) -> None:
        self._parts = parts
        self._lease = lease
        self._options = options
        self._stack = ExitStack()
        self._items: Iterator[SourceItem] = iter(())
        self._turn = Lock()  # a cancelled caller may end the reading while a batch is still being taken

    def begin(self) -> None:
        """Makes the item a local file."""
        lease = self._lease
        ref = ItemRef(lease.uri, lease.name, lease.fingerprint, lease.size_bytes)
        with self._turn:
            file: SourceFile = self._stack.enter_context(self._parts.source.open(ref))
            self._items = iter(self._parts.parsers.parse(file, self._options))

    def take(self) -> list[ParsedDocument | ParseFailure]:
        """Returns the next documents and failures; none at the end."""
        with self._turn:
            return self._taken()

    def _taken(self) -> list[ParsedDocument | ParseFailure]:
        batch: list[ParsedDocument | ParseFailure] = []
        characters = 0
        for item in self._items:
            if isinstance(item, SkippedFile):
                raise ItemFailed(ItemOutcome(ItemState.SKIPPED, item.reason, "skipped"))
            batch.append(item)
            characters += len(item.document.text) if isinstance(item, ParsedDocument) else 0
            if len(batch) == BATCH_DOCUMENTS or characters >= BATCH_CHARACTERS:
                break
        return batch

    def end(self) -> None:
        """Stops the parser and removes the local file."""
        with self._turn:
            if isinstance(self._items, Generator):
                self._items.close()
            self._stack.close()
