"""What a collection's migration to another model is about, as the server remembers it beside the collection."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from qdrant_client import models

from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import CollectionState, point_id
from indexers.qdrant.store import QdrantStore
from indexers.record_schema import definition_from_json
from indexers.types import CollectionDefinition

MIGRATION_OF = "migration_of"


@dataclass(frozen=True, slots=True)
class Pair:
    """Chunks and documents that belong together, and what they promise."""

    definition: str  # as `definition_to_json` writes it
    chunks: str
    documents: str

    def described(self) -> CollectionDefinition:
        """Returns the definition."""
        return definition_from_json(self.definition)


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """A migration: what is built, and what served before, which is kept until it is forgotten."""

    next: Pair | None = None
    previous: Pair | None = None
    to: Pair | None = None  # what is being changed over to, and from what; None when nothing is
    away_from: Pair | None = None

    async def write(self, store: QdrantStore, names: PhysicalNames) -> None:
        """Stores it."""
        payload = {
            "tenant": names.key.tenant,
            MIGRATION_OF: names.key.collection,
            "plan": json.dumps(asdict(self)),
        }
        await store.upsert(names.collections, [models.PointStruct(id=_id(names), vector={}, payload=payload)])


async def read_plan(store: QdrantStore, names: PhysicalNames) -> MigrationPlan:
    """Returns what is stored; an empty plan when there is none."""
    found = await store.retrieve(names.collections, [_id(names)], None, strictly=True)
    if not found:
        return MigrationPlan()
    stored = json.loads((found[0].payload or {})["plan"])
    return MigrationPlan(**{name: Pair(**pair) if pair else None for name, pair in stored.items()})


def generation_of(names: PhysicalNames, chunks: str) -> int:
    """Returns the number of a generation by its physical name."""
    return int(chunks.removeprefix(names.generation(0)[:-1]))


def same_model(one: CollectionDefinition, other: CollectionDefinition) -> bool:
    """Tells whether two definitions promise vectors of the same model."""

    def model(of: CollectionDefinition) -> tuple[object, ...]:
        return (of.dense_model_id, of.dense_revision, of.dim, of.sparse_model_id, of.sparse_revision)

    return model(one) == model(other)


def changed_over(state: CollectionState, names: PhysicalNames, plan: MigrationPlan) -> CollectionState:
    """Returns the state of a collection after it has changed over."""
    if plan.to is None:
        return state
    number = generation_of(names, plan.to.chunks)
    return CollectionState(plan.to.described(), number, state.write_sequence + 1, state.unfinished)


def _id(names: PhysicalNames) -> str:
    return point_id(names.key.tenant, names.key.collection, "migration")
