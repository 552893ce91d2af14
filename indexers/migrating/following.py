"""Brings a record up to what another one holds, a few batches being encoded at any time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from encoders.cpu import lower_priority_of_this_thread
from indexers.homes import RECORD
from indexers.migrating.migration import Encode, Progress
from indexers.record_mirror import FollowedRecord, RecordMirror, Standing, Version
from indexers.types import CollectionDefinition, EncodedDocument

P = ParamSpec("P")
T = TypeVar("T")

_PAGE = 1_000
_BATCH_DOCUMENTS = 64
_BATCH_CHARACTERS = 64_000
_BATCHES_IN_FLIGHT = 4


class Following:
    """The record of one home follows that of another; calls do not overlap."""

    def __init__(self, followed: Path, home: Path, encode: Encode) -> None:
        """Both are folders of homes. Raises: IndexCorrupt."""
        self._followed = FollowedRecord(followed / RECORD)
        self._held = FollowedRecord(home / RECORD)
        self._mirror = RecordMirror(home / RECORD)
        self._encode = encode
        # At the priority of bulk work: whoever asks questions goes ahead.
        self._thread = ThreadPoolExecutor(1, "following", initializer=lower_priority_of_this_thread)

    async def sequence(self) -> int:
        """Returns the write sequence of what is followed."""
        return (await self._in_thread(self._followed.head)).sequence

    async def touched(self, since: int) -> list[str]:
        """Returns the ids that were written or deleted after a write sequence."""
        return await self._in_thread(self._followed.touched, since)

    async def bring_all(self, progress: Progress | None) -> None:
        """Brings every document up to date, and takes out those that are gone."""
        total, done = (await self._in_thread(self._followed.head)).counts.documents, 0

        def looked(count: int) -> None:
            nonlocal done
            done += count
            if progress is not None:
                progress(max(total, done), done)

        async for ids in self._pages(self._followed):
            await self.bring(ids, looked)
        async for ids in self._pages(self._held):
            await self.bring(ids)

    async def bring(self, ids: Sequence[str], looked: Callable[[int], None] = lambda _: None) -> None:
        """Brings some documents up to date: those that are gone go, those that differ are encoded.

        `looked` hears how many more were looked at.
        """
        ours = await self._in_thread(self._followed.standing, ids)
        theirs = await self._in_thread(self._held.standing, ids)
        if gone := [one for one in theirs if one not in ours]:
            await self._in_thread(self._mirror.put, (), gone)
        behind = {
            name: one for name, one in ours.items() if name not in theirs or theirs[name].sequence != one.sequence
        }
        looked(len(ids) - len(behind))
        window: deque[asyncio.Task[list[tuple[Version, EncodedDocument]]]] = deque()
        try:
            for batch in _batches(behind):
                window.append(asyncio.create_task(self._encoded(await self._versions(batch))))
                if len(window) == _BATCHES_IN_FLIGHT:
                    looked(await self._write(window))
            while window:
                looked(await self._write(window))
        finally:
            for task in window:
                task.cancel()
            await asyncio.gather(*window, return_exceptions=True)

    async def declared(self) -> CollectionDefinition | None:
        """Returns what is followed as it is defined now, if other fields are declared there; None when they are not."""
        followed, held = [await self._in_thread(one.definition) for one in (self._followed, self._held)]
        return followed if followed.fields != held.fields else None

    async def take_over(self, definition: CollectionDefinition, since: int) -> None:
        """Takes over what was declared meanwhile, and what deletions after a write sequence have left."""
        tombstones = await self._in_thread(self._followed.tombstones, since)
        await self._in_thread(self._mirror.take_over, tombstones, definition)

    async def rise_above(self, sequence: int) -> None:
        """Raises the write sequence of the home above another one."""
        await self._in_thread(self._mirror.rise_above, sequence)

    async def compare_all(self, since: int) -> list[str]:
        """Returns the ids of documents of which the home holds another state, but for those touched after `since`.

        What the home says that it holds is counted too; the id is then an empty one.
        """
        found: set[str] = set()
        for one in (self._followed, self._held):
            async for ids in self._pages(one):
                found.update(await self.compare(ids))
        counts = (await self._in_thread(self._held.head)).counts
        if await self._in_thread(self._mirror.counted) != counts:
            found.add("")
        return sorted(found - set(await self.touched(since)))

    async def compare(self, ids: Sequence[str]) -> list[str]:
        """Returns those of the ids of which the home holds another state."""
        ours = await self._in_thread(self._followed.standing, ids)
        theirs = await self._in_thread(self._held.standing, ids)
        return [name for name in ids if ours.get(name) != theirs.get(name)]

    async def has_as_many(self) -> bool:
        """Tells whether both sides hold as many documents."""
        ours, theirs = [(await self._in_thread(one.head)).counts for one in (self._followed, self._held)]
        return ours.documents == theirs.documents

    def close(self) -> None:
        """Closes the files."""
        self._thread.shutdown()
        for one in (self._followed, self._held, self._mirror):
            one.close()

    async def _pages(self, record: FollowedRecord) -> AsyncIterator[list[str]]:
        after = ""
        while ids := await self._in_thread(record.ids, after, _PAGE):
            yield ids
            after = ids[-1]

    async def _in_thread(self, call: Callable[P, T], *values: P.args, **named: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(call, *values, **named))

    async def _versions(self, ids: Sequence[str]) -> list[Version]:
        return await self._in_thread(self._followed.versions, ids)

    async def _encoded(self, versions: Sequence[Version]) -> list[tuple[Version, EncodedDocument]]:
        encoded = await self._encode([one.document for one in versions])
        return list(zip(versions, encoded, strict=True))

    async def _write(self, window: deque[asyncio.Task[list[tuple[Version, EncodedDocument]]]]) -> int:
        made = await window[0]
        window.popleft()
        await self._in_thread(self._mirror.put, made, ())
        return len(made)


def _batches(behind: Mapping[str, Standing]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for name, one in behind.items():
        if batch and (len(batch) == _BATCH_DOCUMENTS or characters + one.text_length > _BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(name)
        characters += one.text_length
    if batch:
        yield batch
