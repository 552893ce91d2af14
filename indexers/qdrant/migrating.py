"""A collection on a server moves to another model without a moment in which it does not serve.

The next chunks and documents are built beside those that serve, from the texts that the server holds. Writers go on, in
whatever process, for the model that serves: what they change is encoded again, round after round, and the last of it
while they wait their turn. Then both aliases and the collection's point go over. What served before stays until it is
forgotten, so going back is the same in the other direction. Whatever breaks off goes on from where it was: a document
says by its write sequence which state it is of.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from encoders.term_statistics import TermStatistics
from indexers.definition import is_of, no_statistics
from indexers.errors import BuildFailed, CollectionNotFound
from indexers.migrating.migration import Check, Destination, Progress, Standing, same_vectors
from indexers.qdrant.built import BuiltPair
from indexers.qdrant.conditions import of_tenant
from indexers.qdrant.documents import create_documents, document_ids, touched_since
from indexers.qdrant.generations import Copying, create_generation
from indexers.qdrant.lease import BUILDING, WRITING, Lease, holding
from indexers.qdrant.migration_plan import MigrationPlan, Pair, changed_over, generation_of, read_plan
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import (
    CollectionState,
    is_collection,
    point_id,
    state_of,
    state_payload,
    statistics_id,
    statistics_of,
    statistics_point,
)
from indexers.qdrant.re_encoding import ReEncoding
from indexers.qdrant.repair import made_good
from indexers.qdrant.space import VectorSpace
from indexers.qdrant.store import QdrantStore
from indexers.record_schema import definition_to_json
from indexers.types import CollectionDefinition, Counts

_LAST_DOCUMENTS = 64  # that are encoded while writers wait
_ROUNDS = 20
_BUILDS_BETWEEN = 1_000  # generations that the serving model may have until this one is ready


async def end_change_over(store: QdrantStore, names: PhysicalNames, plan: MigrationPlan) -> CollectionState:
    """Brings a change of models to its end whose aliases have moved, and returns the state after it."""
    lease = Lease(store, names, WRITING)
    try:
        state = await lease.take()
        if plan.to is not None and state.definition != plan.to.described():
            state = changed_over(state, names, plan)
            await lease.set(state_payload(state), free=True)
    finally:
        await lease.drop()
    await _ended(store, names, plan)
    return state


async def _ended(store: QdrantStore, names: PhysicalNames, plan: MigrationPlan) -> None:
    """Removes what was kept before the change, then notes what it came from; whoever repeats it does no harm."""
    kept = [pair for pair in (plan.to, plan.away_from) if pair is not None]
    if plan.previous is not None:
        besides = {name for pair in kept for name in (pair.chunks, pair.documents)}
        for name in {plan.previous.chunks, plan.previous.documents} - besides - {""}:
            await store.drop(name)
    await MigrationPlan(previous=plan.away_from).write(store, names)


class QdrantMigration:
    """The migration of one collection; at most one process carries it out at a time."""

    def __init__(self, store: QdrantStore, names: PhysicalNames, moved: Callable[[], None]) -> None:
        """`moved` is told when the collection has changed over; other processes find out when they look."""
        self._store = store
        self._names = names
        self._moved = moved

    async def standing(self) -> Standing:
        """Returns where it stands."""
        names, plan = self._names, await read_plan(self._store, self._names)
        wanted = [point_id(names.key.tenant, names.key.collection)]
        found = await self._store.retrieve(names.collections, wanted, None, strictly=True)
        if not found or not is_collection(found[0].payload or {}):
            raise CollectionNotFound(names.key.collection)
        serving = state_of(found[0].payload or {}).definition
        beside = [None if pair is None else pair.described() for pair in (plan.next, plan.previous)]
        return Standing(serving, *beside)

    async def run(self, to: Destination, check: Check, progress: Progress | None = None) -> None:
        """Builds for a model, or goes on with it, checks, and changes over."""
        async with holding(self._store, self._names, BUILDING) as (claim, found):
            state = await self._settle(found)
            if is_of(state.definition, to.model):
                return
            definition, previous = to.described(state.definition), (await self._plan()).previous
            if previous is not None and same_vectors(previous.described(), definition):
                await self._go_back(
                    state, replace(previous, definition=definition_to_json(definition)), to, check, claim
                )
                return
            pair = await self._begun(state, definition, to)
            building = ReEncoding(self._store, self._names, pair, to.model, await self._statistics(state), to.encode)
            since = await self._everything(building, progress)
            await check(BuiltPair(self._store, self._names, pair, building.statistics))
            since = await self._caught_up(building, since)
            await self._change_over(building, since, pair.chunks, generation_of(self._names, pair.chunks))

    async def forget(self) -> None:
        """Removes what served before."""
        plan = await self._plan()
        if plan.previous is not None:
            await replace(plan, previous=None).write(self._store, self._names)
            await self._drop(plan.previous)

    async def cancel(self) -> None:
        """Removes what was built and does not serve."""
        async with holding(self._store, self._names, BUILDING):
            plan = await self._plan()
            if plan.next is not None:
                await replace(plan, next=None).write(self._store, self._names)
                await self._drop(plan.next)

    async def _go_back(self, state: CollectionState, pair: Pair, to: Destination, check: Check, claim: Lease) -> None:
        """Serves what served before, brought up to date by its own model; what serves now is kept in its place."""
        before = replace(state, generation=generation_of(self._names, pair.chunks))
        building = ReEncoding(self._store, self._names, pair, to.model, await self._statistics(before), to.encode)
        since = await self._everything(building, None)
        await check(BuiltPair(self._store, self._names, pair, building.statistics))
        # Generations only rise, for everyone who has the collection open; so the old one gets a new number.
        number, definition = state.generation + 1, pair.described()
        target = await create_generation(self._store, self._names, number, _space(definition, to), definition.fields)
        copies = Copying(
            self._store, self._names, target, building.statistics, definition.fields, claim.keep, pair.chunks
        )
        await copies.everything()
        since = await self._caught_up(building, since, copies)
        await self._change_over(building, since, target, number, copies)

    async def _plan(self) -> MigrationPlan:
        return await read_plan(self._store, self._names)

    async def _begun(self, state: CollectionState, definition: CollectionDefinition, to: Destination) -> Pair:
        """Returns the pair that is being built for the definition, made now if there is none."""
        plan, names = await self._plan(), self._names
        if plan.next is not None:
            usable = generation_of(names, plan.next.chunks) > state.generation
            if usable and plan.next.definition == definition_to_json(definition):
                return plan.next
            await replace(plan, next=None).write(self._store, names)
            await self._drop(plan.next)
        number = state.generation + _BUILDS_BETWEEN
        chunks = await create_generation(self._store, names, number, _space(definition, to), definition.fields)
        documents = names.documents_version(time.time_ns() // 1_000)
        await create_documents(self._store, names, documents, definition.fields)
        pair = Pair(definition_to_json(definition), chunks, documents)
        await replace(plan, next=pair).write(self._store, names)
        return pair

    async def _everything(self, building: ReEncoding, progress: Progress | None) -> int:
        """Encodes everything, then what was written meanwhile, until little is left; returns where to go on."""
        reached = await self._sequence()
        ids = await self._all_ids(building.pair)
        await building.bring(ids, None if progress is None else partial(progress, len(ids)))
        return await self._caught_up(building, reached)

    async def _caught_up(self, building: ReEncoding, reached: int, copying: Copying | None = None) -> int:
        """Encodes what was written after a sequence, until little is left; returns where to go on."""
        for _ in range(_ROUNDS):
            since, reached = reached, await self._sequence()
            ids = sorted(await touched_since(self._store, self._names, since))
            await building.bring(ids)
            if copying is not None:
                await copying.again(ids)
            if len(ids) <= _LAST_DOCUMENTS:
                return reached
        raise self._failed("documents change faster than they are encoded; run it again when there are fewer writes")

    async def _change_over(
        self, building: ReEncoding, since: int, chunks: str, number: int, copying: Copying | None = None
    ) -> None:
        store, names, pair = self._store, self._names, building.pair
        async with holding(store, names, WRITING) as (lease, found):
            state, _ = await made_good(store, names, lease, found)
            touched = sorted(await touched_since(store, names, since))
            await building.bring(touched)
            if copying is not None:
                await copying.again(touched)
            await self._check_counts(pair.documents, chunks)
            definition = definition_to_json(replace(pair.described(), fields=state.definition.fields))
            plan = await self._announced(state, Pair(definition, chunks, pair.documents))
            await store.upsert(names.collections, [statistics_point(names.key, number, building.statistics)])
            await store.point_aliases({names.chunks: chunks, names.documents: pair.documents})
            await lease.set(state_payload(changed_over(state, names, plan)), free=True)
        self._moved()
        await _ended(store, names, plan)

    async def _announced(self, state: CollectionState, to: Pair) -> MigrationPlan:
        """Writes down what is about to happen, so that whoever comes after a crash can bring it to its end."""
        names = self._names
        chunks, documents = await self._store.target_of(names.chunks), await self._store.target_of(names.documents)
        serving = Pair(definition_to_json(state.definition), chunks or "", documents or "")
        plan = replace(await self._plan(), to=to, away_from=serving)
        await plan.write(self._store, names)
        return plan

    async def _check_counts(self, documents: str, chunks: str) -> None:
        """Refuses to change over when a document is missing, or a chunk of one."""
        store, everything = self._store, of_tenant(self._names.key.tenant)
        wanted = await store.count(self._names.documents, everything)
        promised = 0
        async for batch in store.scroll(documents, everything, ["chunk_count"]):
            promised += sum(int((one.payload or {})["chunk_count"]) for one in batch)
        found = Counts(await store.count(documents, everything), await store.count(chunks, everything))
        if found != Counts(wanted, promised):
            raise self._failed(f"{found} were built, and {Counts(wanted, promised)} are needed")

    async def _settle(self, state: CollectionState) -> CollectionState:
        """Ends a change-over that broke off, or forgets it when it did not happen; returns the state after that.

        Raises:
            BuildFailed: an earlier version made the collection, in a layout that cannot change over.
        """
        plan, names = await self._plan(), self._names
        if await self._store.target_of(names.documents) is None:
            raise self._failed("an earlier version made it; transfer it to a new collection first")
        if plan.to is None:
            return state
        if await self._store.target_of(names.chunks) == plan.to.chunks:
            return await end_change_over(self._store, names, plan)
        await replace(plan, to=None, away_from=None).write(self._store, names)
        return state

    async def _statistics(self, state: CollectionState) -> TermStatistics:
        """Returns the statistics of a generation: words do not change with the dense model."""
        wanted = statistics_id(self._names.key, state.generation)
        found = await self._store.retrieve(self._names.collections, [wanted], None, strictly=True)
        return statistics_of(found[0]) if found else no_statistics(state.definition)

    async def _sequence(self) -> int:
        found = await self._store.retrieve(
            self._names.collections,
            [point_id(self._names.key.tenant, self._names.key.collection)],
            ["write_sequence"],
            strictly=True,
        )
        return int((found[0].payload or {})["write_sequence"]) if found else 0

    async def _all_ids(self, pair: Pair) -> list[str]:
        """Returns the ids of all documents of both sides: what a tombstone has been forgotten of goes too."""
        everything = of_tenant(self._names.key.tenant)
        batches = self._store.scroll(pair.documents, everything, ["document_id"])
        there = [one.payload["document_id"] async for batch in batches for one in batch if one.payload]
        return sorted({*there, *await document_ids(self._store, self._names, everything)})

    async def _drop(self, pair: Pair) -> None:
        for name in (pair.chunks, pair.documents):
            if name:
                await self._store.drop(name)

    def _failed(self, reason: str) -> BuildFailed:
        return BuildFailed(self._names.key.collection, reason)


def _space(definition: CollectionDefinition, to: Destination) -> VectorSpace:
    codec = to.model.codec
    return VectorSpace(definition.dim, codec.dim if codec is not None and definition.code_bytes else 0)
