"""A collection on a server moves to another model without a moment in which it does not serve.

The next chunks and documents are built beside those that serve, from the texts that the server holds. Writers go on, in
whatever process, for the model that serves: what they change is encoded again, round after round, and the last of it
while they wait their turn. Then both aliases and the collection's point go over. What served before stays until it is
forgotten, so going back is the same in the other direction. Whatever breaks off goes on from where it was: a document
says by its write sequence which state it is of.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from encoders.term_statistics import TermStatistics
from indexers.definition import check_model, new_definition, no_statistics
from indexers.errors import BuildFailed, ModelMismatch
from indexers.options import DenseModel
from indexers.qdrant.conditions import of_tenant
from indexers.qdrant.documents import create_documents, document_ids, touched_since
from indexers.qdrant.generations import Copying, create_generation
from indexers.qdrant.lease import BUILDING, WRITING, Lease, holding
from indexers.qdrant.migration_plan import MigrationPlan, Pair, changed_over, generation_of, read_plan
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import (
    CollectionState,
    point_id,
    state_payload,
    statistics_id,
    statistics_of,
    statistics_point,
)
from indexers.qdrant.re_encoding import Encode, ReEncoding
from indexers.qdrant.repair import made_good
from indexers.qdrant.searching import candidates_of, search_requests
from indexers.qdrant.space import VectorSpace
from indexers.qdrant.store import QdrantStore
from indexers.record_schema import definition_to_json
from indexers.types import Candidates, Counts, SearchQuery

_LAST_DOCUMENTS = 64  # that are encoded while writers wait
_ROUNDS = 20
_BUILDS_BETWEEN = 1_000  # generations that the serving model may have until this one is ready

Check: TypeAlias = Callable[[], Awaitable[None]]
"""Raises when what was built must not serve; it searches by `QdrantMigration.search`."""
Progress: TypeAlias = Callable[[int, int], None]
"""Hears how many documents there are, and how many were looked at."""


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
    await MigrationPlan(previous=plan.away_from).write(store, names)
    return state


class QdrantMigration:
    """The migration of one collection; at most one process carries it out at a time."""

    def __init__(self, store: QdrantStore, names: PhysicalNames) -> None:
        self._store = store
        self._names = names

    async def plan(self) -> MigrationPlan:
        """Returns where it stands."""
        return await read_plan(self._store, self._names)

    async def run(self, model: DenseModel, encode: Encode, check: Check, progress: Progress | None = None) -> None:
        """Builds for a model, or goes on with it, checks, and changes over; the collection then is that model's.

        Raises:
            BuildFailed: what was built is not what the collection holds, or writes come too fast; nothing has changed.
            IndexUnavailable: the server failed, or another process builds; run it again.
        """
        async with holding(self._store, self._names, BUILDING) as (_, found):
            state = await self._settle(found)
            if _serves(state, model):
                return
            pair = await self._begun(state, model)
            building = ReEncoding(self._store, self._names, pair, model, await self._statistics(state), encode)
            since = await self._caught_up(building, progress)
            await check()
            await self._change_over(building, since, pair.chunks, generation_of(self._names, pair.chunks))

    async def roll_back(self, model: DenseModel, encode: Encode) -> None:
        """Serves what served before, brought up to date by its own model; what serves now is kept in its place.

        Raises:
            BuildFailed: there is nothing to go back to, or see `run`.
        """
        async with holding(self._store, self._names, BUILDING) as (claim, found):
            state = await self._settle(found)
            pair = (await self.plan()).previous
            if pair is None:
                raise self._failed("there is nothing to go back to")
            check_model(pair.described(), model)
            statistics = await self._statistics(replace(state, generation=generation_of(self._names, pair.chunks)))
            building = ReEncoding(self._store, self._names, pair, model, statistics, encode)
            since = await self._caught_up(building, None)
            # Generations only rise, for everyone who has the collection open; so the old one gets a new number.
            number, definition = state.generation + 1, pair.described()
            space = VectorSpace(definition.dim, model.codec.dim if model.codec and definition.code_bytes else 0)
            target = await create_generation(self._store, self._names, number, space, definition.fields)
            copying = Copying(self._store, self._names, target, statistics, definition.fields, claim.keep, pair.chunks)
            await copying.everything()
            await self._change_over(building, since, target, number, copying)

    async def forget(self) -> None:
        """Removes what served before."""
        plan = await self.plan()
        if plan.previous is not None:
            await replace(plan, previous=None).write(self._store, self._names)
            await self._drop(plan.previous)

    async def cancel(self) -> None:
        """Removes what was built and does not serve."""
        async with holding(self._store, self._names, BUILDING):
            plan = await self.plan()
            if plan.next is not None:
                await replace(plan, next=None).write(self._store, self._names)
                await self._drop(plan.next)

    async def search(self, query: SearchQuery) -> Candidates:
        """Searches what is built.

        Raises:
            BuildFailed: nothing is.
        """
        pair = (await self.plan()).next
        if pair is None:
            raise self._failed("nothing is being built")
        requests = search_requests(query, of_tenant(self._names.key.tenant), self._store.options)
        return candidates_of(query, await self._store.search(pair.chunks, requests))

    async def _begun(self, state: CollectionState, model: DenseModel) -> Pair:
        """Returns the pair that is being built for the model, made now if there is none."""
        plan, names, serving = await self.plan(), self._names, state.definition
        with_tokens = serving.code_bytes > 0 or model.codec is not None
        made = new_definition(names.key, serving.fields, serving.description, model, token_vectors=with_tokens)
        definition = replace(made, created_at=serving.created_at)
        if plan.next is not None:
            usable = generation_of(names, plan.next.chunks) > state.generation
            if usable and plan.next.definition == definition_to_json(definition):
                return plan.next
            await replace(plan, next=None).write(self._store, names)
            await self._drop(plan.next)
        number = state.generation + _BUILDS_BETWEEN
        space = VectorSpace(definition.dim, model.codec.dim if model.codec and definition.code_bytes else 0)
        chunks = await create_generation(self._store, names, number, space, definition.fields)
        documents = names.documents_version(time.time_ns() // 1_000)
        await create_documents(self._store, names, documents, definition.fields)
        pair = Pair(definition_to_json(definition), chunks, documents)
        await replace(plan, next=pair).write(self._store, names)
        return pair

    async def _caught_up(self, building: ReEncoding, progress: Progress | None) -> int:
        """Encodes everything, then what was written meanwhile, until little is left; returns where to go on."""
        reached = await self._sequence()
        ids = await self._all_ids(building.pair)
        await building.bring(ids, None if progress is None else partial(progress, len(ids)))
        for _ in range(_ROUNDS):
            since, reached = reached, await self._sequence()
            ids = sorted(await touched_since(self._store, self._names, since))
            await building.bring(ids)
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
        await MigrationPlan(previous=plan.away_from).write(store, names)
        if plan.previous is not None:
            await self._drop(plan.previous, besides=(chunks, pair.documents))

    async def _announced(self, state: CollectionState, to: Pair) -> MigrationPlan:
        """Writes down what is about to happen, so that whoever comes after a crash can bring it to its end."""
        names = self._names
        chunks, documents = await self._store.target_of(names.chunks), await self._store.target_of(names.documents)
        serving = Pair(definition_to_json(state.definition), chunks or "", documents or "")
        plan = replace(await self.plan(), to=to, away_from=serving)
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
        plan, names = await self.plan(), self._names
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

    async def _drop(self, pair: Pair, besides: tuple[str, ...] = ()) -> None:
        for name in (pair.chunks, pair.documents):
            if name and name not in besides:
                await self._store.drop(name)

    def _failed(self, reason: str) -> BuildFailed:
        return BuildFailed(self._names.key.collection, reason)


def _serves(state: CollectionState, model: DenseModel) -> bool:
    try:
        check_model(state.definition, model)
    except ModelMismatch:
        return False
    return True
