"""Makes good what a write has left that broke off: its process died, or the server failed in the middle.

Deletions are completed: their tombstones were written first. Documents whose new version had arrived whole stay. Of the
others the new chunks of a document that was never there go away, and one that was there loses its fingerprint, so that
whoever compares writes it again, whatever its source says by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from qdrant_client import models

from indexers.qdrant.conditions import any_keyword, number, of_tenant
from indexers.qdrant.lease import Lease
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import CollectionState, point_id, state_payload
from indexers.qdrant.store import QdrantStore
from indexers.qdrant.tombstones import Tombstones

IDS_A_CALL = 1_000


async def repair(store: QdrantStore, names: PhysicalNames, tombstones: Tombstones, unfinished: int) -> list[str]:
    """Repairs the write with this sequence, and returns the ids of the documents whose deletion it has completed."""
    deleted = await tombstones.of_write(unfinished)
    await remove(store, names, deleted)
    await tombstones.put(deleted, unfinished - 1)
    begun = await _begun(store, names, unfinished)
    there = await _sequences(store, names, begun)
    await _mark_incomplete(store, names, [one for one in begun if there.get(one, unfinished) != unfinished], unfinished)
    never = [one for one in begun if one not in there]
    if never:
        await tombstones.put(never, unfinished, fences=False)
        await remove(store, names, never)
    # Who tries again knows the sequence before this one; what is his own, deletions too, must not keep him from it.
    whole = of_tenant(names.key.tenant, number("write_sequence", unfinished))
    await store.set_payload(names.documents, {"write_sequence": unfinished - 1}, whole)
    return deleted


async def made_good(
    store: QdrantStore, names: PhysicalNames, lease: Lease, state: CollectionState
) -> tuple[CollectionState, list[str]]:
    """Repairs what a state says is unfinished; returns the state after it, and the documents that it has deleted."""
    if not state.unfinished:
        return state, []
    deleted = await repair(store, names, Tombstones(store, names), state.unfinished)
    repaired = replace(state, write_sequence=max(state.unfinished, state.write_sequence), unfinished=0)
    await lease.set(state_payload(repaired))
    return repaired, deleted


async def remove(store: QdrantStore, names: PhysicalNames, document_ids: Sequence[str]) -> None:
    """Removes documents: chunks first, so that a document that is gone has none."""
    for part in parts(document_ids):
        theirs = of_tenant(names.key.tenant, any_keyword("document_id", part))
        await store.delete(names.chunks, theirs)
        await store.delete(names.documents, theirs)


def parts(ids: Sequence[str]) -> list[Sequence[str]]:
    """Cuts ids into pieces for one call each."""
    return [ids[start : start + IDS_A_CALL] for start in range(0, len(ids), IDS_A_CALL)]


async def _begun(store: QdrantStore, names: PhysicalNames, version: int) -> list[str]:
    brought = of_tenant(names.key.tenant, number("version", version))
    batches = store.scroll(names.chunks, brought, ["document_id"])
    return sorted({one.payload["document_id"] async for batch in batches for one in batch if one.payload})


async def _sequences(store: QdrantStore, names: PhysicalNames, document_ids: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts(document_ids):
        ids = [point_id(one) for one in part]
        records = await store.retrieve(names.documents, ids, ["document_id", "write_sequence"], strictly=True)
        payloads: Iterable[dict[str, object]] = (one.payload or {} for one in records)
        found |= {str(one["document_id"]): int(str(one.get("write_sequence", 0))) for one in payloads}
    return found


async def _mark_incomplete(
    store: QdrantStore, names: PhysicalNames, document_ids: Sequence[str], unfinished: int
) -> None:
    for part in parts(document_ids):
        theirs: models.Filter = of_tenant(names.key.tenant, any_keyword("document_id", part))
        # The sequence lets a build see that their chunks have changed.
        await store.set_payload(names.documents, {"fingerprint": "", "write_sequence": unfinished - 1}, theirs)
