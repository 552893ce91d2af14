"""All embedded collections of a data folder: `<root>/<tenant>/<collection>/`, one process at a time.

Names are checked before they become paths, and every path begins with the tenant of the key: there is no other way to a
collection. Collections are opened at first use and stay open.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from indexers.definition import added_fields, new_definition
from indexers.embedded import EmbeddedIndex
from indexers.errors import (
    CollectionExists,
    CollectionNotFound,
    IndexCorrupt,
    InvalidName,
    ModelMismatch,
    TooManyCollections,
)
from indexers.folder_lock import FolderLock
from indexers.generation import sync
from indexers.homes import RECORD, Homes, is_collection, serving_home, sweep_homes, write_homes
from indexers.index import Index
from indexers.migrating.embedded import EmbeddedMigration
from indexers.models import Models
from indexers.names import check_key, check_tenant
from indexers.options import IndexOptions
from indexers.owned import OwnedTasks
from indexers.record_read import read_definition
from indexers.record_schema import create_record
from indexers.types import CollectionDefinition, CollectionKey, FieldType

_LEFT_S = 600.0  # that an index stays open after its collection has moved: no request takes longer

_log = structlog.get_logger()


class EmbeddedCatalog:
    """The collections of one data folder; holds the folder's lock until `close`."""

    def __init__(self, root: Path, models: Models, options: IndexOptions) -> None:
        """Locks the folder and sweeps what a crash left.

        Raises:
            DataFolderLocked: another process holds the folder.
        """
        self._root = root.absolute()  # children have another working directory
        self._models = models
        self._options = options
        self._lock = FolderLock(root)
        self._opened: dict[CollectionKey, asyncio.Task[EmbeddedIndex]] = {}
        self._leaving: set[CollectionKey] = set()  # deleted, with a folder that is still there
        self._changes = asyncio.Lock()
        self._migrations: dict[CollectionKey, EmbeddedMigration] = {}
        self._moved = OwnedTasks()  # each closes an index that a collection has left
        for left in root.glob("*/.*"):
            shutil.rmtree(left, ignore_errors=True)
        for folder in root.glob("*/*"):
            if is_collection(folder):
                with suppress(IndexCorrupt):  # whoever opens it will hear
                    sweep_homes(folder)

    async def create(
        self, key: CollectionKey, fields: dict[str, FieldType], description: str, *, token_vectors: bool = True
    ) -> Index:
        """Makes an empty collection for the vectors of the configured model."""
        folder = self._folder(key)
        definition = new_definition(key, fields, description, self._models.configured, token_vectors=token_vectors)
        async with self._changes:
            if folder.exists():
                raise CollectionExists(key.collection)
            if len(self._names(key.tenant)) >= self._options.max_collections:
                raise TooManyCollections(self._options.max_collections)
            await asyncio.to_thread(_create, folder, definition)
        return await self.open(key)

    async def open(self, key: CollectionKey) -> Index:
        """Returns the collection; callers that come at once share one opening."""
        return await self._open(key)

    async def list(self, tenant: str) -> list[Index]:
        """Returns the tenant's collections by name; those of another model are left out and logged."""
        found: list[Index] = []
        for name in self._names(check_tenant(tenant)):
            try:
                found.append(await self._open(CollectionKey(tenant, name)))
            except ModelMismatch as error:
                _log.warning("collection_skipped", collection=name, reason=str(error))
            except CollectionNotFound:
                continue  # deleted meanwhile
        return found

    async def update(self, key: CollectionKey, fields: dict[str, FieldType], description: str | None) -> Index:
        """Adds fields, changes the description, or both."""
        async with self._changes:
            index = await self._open(key)
            definition = index.definition
            declared = added_fields(definition.fields, fields)
            kept = definition.description if description is None else description
            await index.redefine(declared, kept)
            return index

    def migration(self, key: CollectionKey) -> EmbeddedMigration:
        """Returns what moves a collection to another model; the same one for all who ask."""
        folder = self._existing(key)
        if key not in self._migrations:
            self._migrations[key] = EmbeddedMigration(key, folder, self._options, self._hand_over)
        return self._migrations[key]

    async def delete(self, key: CollectionKey) -> None:
        """Closes the collection, then removes its folder; a crash in between leaves all of it or nothing."""
        async with self._changes:
            folder = self._existing(key)
            # Who opened it while it closes would keep it, and read the old one when a new one has its name.
            self._leaving.add(key)
            try:
                opened = self._opened.pop(key, None)
                if opened is not None:
                    await _close([opened])
                trash = Path(tempfile.mkdtemp(prefix=".deleted-", dir=folder.parent))
                folder.rename(trash / folder.name)
                self._migrations.pop(key, None)
            finally:
                self._leaving.discard(key)
            await asyncio.to_thread(_remove, trash)

    async def close(self) -> None:
        """Closes every collection and lets go of the folder."""
        opened = list(self._opened.values())
        self._opened.clear()
        await _close(opened)
        await self._moved.cancel()
        self._lock.release()

    async def _open(self, key: CollectionKey) -> EmbeddedIndex:
        task = self._opened.get(key)
        if task is not None and task.done() and not task.cancelled() and task.exception() is None:
            return task.result()
        folder = self._existing(key)
        if task is None:
            task = asyncio.create_task(self._load_serving(folder))
            self._opened[key] = task
            task.add_done_callback(lambda done: self._forget_failed(key, done))
        return await asyncio.shield(task)

    async def _load_serving(self, folder: Path) -> EmbeddedIndex:
        return await self._load(await asyncio.to_thread(serving_home, folder))

    async def _load(self, home: Path) -> EmbeddedIndex:
        model = await self._models.model_of(await asyncio.to_thread(read_definition, home / RECORD))
        return await asyncio.to_thread(EmbeddedIndex, home, self._options, model.codec)

    async def _hand_over(self, key: CollectionKey, last_steps: Callable[[], Awaitable[Homes]]) -> None:
        """Serves a collection from other homes; those who have its index open may go on reading it for a while."""
        async with self._changes:
            folder = self._existing(key)
            before: EmbeddedIndex | None = None
            with suppress(ModelMismatch):  # then nobody can have it open
                before = await self._open(key)

            async def change() -> None:
                homes = await last_steps()
                task = asyncio.create_task(self._load(folder / homes.serving))
                fresh = await task
                try:
                    await asyncio.to_thread(write_homes, folder, homes)
                except BaseException:
                    await fresh.close()
                    raise
                self._opened[key] = task
                await asyncio.to_thread(sweep_homes, folder)

            await (change() if before is None else before.retire(change))
            if before is not None:
                self._moved.start(_close_after(before, _LEFT_S))

    def _forget_failed(self, key: CollectionKey, task: asyncio.Task[EmbeddedIndex]) -> None:
        if (task.cancelled() or task.exception() is not None) and self._opened.get(key) is task:
            del self._opened[key]

    def _folder(self, key: CollectionKey) -> Path:
        check_key(key)
        return self._root / key.tenant / key.collection

    def _existing(self, key: CollectionKey) -> Path:
        """A name that no collection can have is a collection that does not exist."""
        try:
            folder = self._folder(key)
        except InvalidName:
            raise CollectionNotFound(key.collection) from None
        if key in self._leaving or not folder.is_dir():
            raise CollectionNotFound(key.collection)
        return folder

    def _names(self, tenant: str) -> Sequence[str]:
        folder = self._root / tenant
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir() if is_collection(entry))


async def _close(opened: Sequence[asyncio.Task[EmbeddedIndex]]) -> None:
    results = await asyncio.gather(*opened, return_exceptions=True)
    await asyncio.gather(*(index.close() for index in results if isinstance(index, EmbeddedIndex)))


async def _close_after(index: EmbeddedIndex, pause_s: float) -> None:
    try:
        await asyncio.sleep(pause_s)
    finally:
        await index.close()


def _create(folder: Path, definition: CollectionDefinition) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".created-", dir=folder.parent))
    create_record(fresh / RECORD, definition)
    fresh.rename(folder)
    sync(folder.parent)


def _remove(trash: Path) -> None:
    sync(trash.parent)
    shutil.rmtree(trash, ignore_errors=True)
