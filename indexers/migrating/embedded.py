"""An embedded collection moves to another model without a moment in which it does not serve.

The next home is built inside the collection's folder from the record that serves, while that is searched and written.
What is written meanwhile is encoded again, round after round, and the last of it while writers wait. Then one file is
replaced, and the collection lives in its new home. The old one stays to go back to: going back is a migration to it,
which finds most of its documents as they are.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from indexers.builder import run_build
from indexers.definition import is_of
from indexers.embedded import EmbeddedIndex
from indexers.errors import BuildFailed
from indexers.generation import Generations
from indexers.homes import (
    GENERATIONS,
    RECORD,
    Homes,
    new_home,
    read_homes,
    serving_home,
    sweep_homes,
    write_homes,
)
from indexers.migrating.following import Following
from indexers.migrating.migration import Check, Destination, Progress, Standing, same_vectors
from indexers.migrating.searched import SearchedIndex
from indexers.options import DenseModel, IndexOptions
from indexers.record_read import read_definition
from indexers.record_schema import create_record
from indexers.types import CollectionDefinition, CollectionKey

_LAST_DOCUMENTS = 64  # that are encoded while writers wait
_ROUNDS = 20
_BUILDS_BETWEEN = 1_000  # generations that the serving home may have until the next one is ready

HandOver: TypeAlias = Callable[[CollectionKey, Callable[[], Awaitable[Homes]]], Awaitable[None]]
"""Runs the last steps with no write under way, then serves the collection from the homes that they return."""


class EmbeddedMigration:
    """The migration of one collection of a data folder that this process holds."""

    def __init__(self, key: CollectionKey, folder: Path, options: IndexOptions, hand_over: HandOver) -> None:
        """`folder` is the collection's."""
        self._key = key
        self._folder = folder
        self._options = options
        self._hand_over = hand_over
        self._lock = asyncio.Lock()

    async def standing(self) -> Standing:
        """Returns where it stands."""
        homes = read_homes(self._folder)
        described = [await self._definition(home) if home else None for home in (homes.building, homes.previous)]
        return Standing(await self._definition(homes.serving), *described)

    async def run(self, to: Destination, check: Check, progress: Progress | None = None) -> None:
        """Builds for a model, or goes on with it, checks, and changes over."""
        async with self._alone():
            serving = await self._definition(read_homes(self._folder).serving)
            if is_of(serving, to.model):
                return
            definition = to.described(serving)
            home = await self._begun(definition)
            following = await asyncio.to_thread(Following, serving_home(self._folder), self._folder / home, to.encode)
            try:
                await self._everything(following, progress)
                await self._build(home)
                since = await self._everything(following, None)
                await following.take_over(definition, 0)
                self._refuse(await following.compare_all(since))
                async with self._opened(home, to.model) as built:
                    await check(built)
                await self._declared_meanwhile(following, home, to)
                await self._changed_over(following, home, await self._caught_up(following, since))
            finally:
                await asyncio.to_thread(following.close)

    async def forget(self) -> None:
        """Removes what served before."""
        async with self._alone():
            homes = read_homes(self._folder)
            building = "" if homes.building == homes.previous else homes.building
            await asyncio.to_thread(self._keep, replace(homes, building=building, previous=""))

    async def cancel(self) -> None:
        """Removes what was begun and does not serve; what served before stays, also half brought up to date."""
        async with self._alone():
            homes = read_homes(self._folder)
            await asyncio.to_thread(self._keep, replace(homes, building=""))

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        if self._lock.locked():
            raise BuildFailed(self._key.collection, "a migration of it is under way; wait for it, or cancel it")
        async with self._lock:
            yield

    async def _begun(self, definition: CollectionDefinition) -> str:
        """Returns the home that is built for the definition: what was begun, or left before, or a new one.

        What served before stays that while it is brought up to date, so that going back can break off and go on.
        """
        homes = read_homes(self._folder)
        for home in (homes.building, homes.previous):
            if home and same_vectors(await self._definition(home), definition):
                break
        else:
            home = await asyncio.to_thread(new_home, self._folder)
            await asyncio.to_thread(create_record, self._folder / home / RECORD, definition)
        await asyncio.to_thread(self._keep, replace(homes, building=home))
        return home

    async def _everything(self, following: Following, progress: Progress | None) -> int:
        """Brings everything, then what was written meanwhile, until little is left; returns where to go on."""
        reached = await following.sequence()
        await following.bring_all(progress)
        return await self._caught_up(following, reached)

    async def _caught_up(self, following: Following, since: int) -> int:
        """Brings what was written after a sequence, until little is left; returns where to go on."""
        for _ in range(_ROUNDS):
            reached = await following.sequence()  # before what was touched is read: what comes between is read again
            touched = await following.touched(since)
            if len(touched) <= _LAST_DOCUMENTS:
                return since
            await following.bring(touched)
            since = reached
        reason = "documents change faster than they are encoded; run it again when there are fewer writes"
        raise BuildFailed(self._key.collection, reason)

    async def _build(self, home: str) -> None:
        """Folds the home into a generation above all that have served, so that generations only rise."""
        place = self._folder / home
        generations = Generations(place / GENERATIONS)
        numbers = [_number(Generations(one / GENERATIONS)) for one in (place, serving_home(self._folder))]
        number = max(numbers) + _BUILDS_BETWEEN
        scratch = await asyncio.to_thread(generations.scratch)
        await run_build(self._key.collection, place / RECORD, scratch, number, self._options)
        await asyncio.to_thread(generations.place, scratch, number)
        await asyncio.to_thread(generations.point_to, number)

    async def _declared_meanwhile(self, following: Following, home: str, to: Destination) -> None:
        """Builds once more when fields were declared during the check: a generation without them could not serve."""
        if (declared := await following.declared()) is not None:
            await following.take_over(to.described(declared), 0)
            await self._build(home)

    async def _changed_over(self, following: Following, home: str, since: int) -> None:
        """Changes over; once begun it goes to its end, whoever leaves."""
        over = asyncio.ensure_future(self._hand_over(self._key, lambda: self._last_steps(following, home, since)))
        try:
            await asyncio.shield(over)
        finally:
            await asyncio.wait([over])

    async def _last_steps(self, following: Following, home: str, since: int) -> Homes:
        """Brings the rest while nobody writes, compares both sides, and returns where the collection lives then."""
        homes = read_homes(self._folder)
        if homes.building != home:
            raise BuildFailed(self._key.collection, "the collection was deleted meanwhile")
        touched = await following.touched(since)
        await following.bring(touched)
        serving, own = await self._definition(homes.serving), await self._definition(home)
        changed = replace(own, fields=serving.fields, description=serving.description)
        await following.take_over(changed, since)
        self._refuse(await following.compare(touched))
        if not await following.has_as_many():
            raise BuildFailed(self._key.collection, "not as many documents were built as the collection holds")
        await following.rise_above(await following.sequence())
        return Homes(serving=home, previous=homes.serving)

    def _refuse(self, differing: Sequence[str]) -> None:
        if differing:
            reason = f"{len(differing)} documents are not what the collection holds, the first is {differing[0]!r}"
            raise BuildFailed(self._key.collection, reason)

    @asynccontextmanager
    async def _opened(self, home: str, model: DenseModel) -> AsyncIterator[BuiltHome]:
        options = replace(self._options, build_automatically=False)
        index = await asyncio.to_thread(EmbeddedIndex, self._folder / home, options, model.codec)
        try:
            yield BuiltHome(index)
        finally:
            await index.close()

    async def _definition(self, home: str) -> CollectionDefinition:
        return await asyncio.to_thread(read_definition, self._folder / home / RECORD)

    def _keep(self, homes: Homes) -> None:
        """Stores the homes, and removes all others; on a full disk what can be built again makes room first."""
        try:
            write_homes(self._folder, homes)
        except OSError:
            for home in set(read_homes(self._folder).all) - set(homes.all):
                shutil.rmtree(self._folder / home / GENERATIONS, ignore_errors=True)
            write_homes(self._folder, homes)
        sweep_homes(self._folder)


class BuiltHome(SearchedIndex):
    """A home that was built and does not serve."""

    def __init__(self, index: EmbeddedIndex) -> None:
        super().__init__(index)
        self._home = index

    async def texts(self, count: int) -> list[str]:
        """Returns the texts of up to so many chunks, chosen by chance."""
        return await self._home.sample_texts(count)


def _number(generations: Generations) -> int:
    current = generations.current()
    return 0 if current is None else int(current.name)
