"""One client of a Qdrant server: every call has one total deadline, and every failure is an IndexUnavailable.

The client's own timeout starts anew with every phase of a call, so a server that sends a byte now and then would hold a
caller for ever (case VEC-22). Here the whole call is cancelled, which closes its stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException

from indexers.errors import IndexUnavailable
from indexers.options import GraphShape
from indexers.qdrant.options import QdrantOptions

SCROLL_BATCH = 1_000
_VECTORS_A_SCROLL = 50  # a point's token vectors are some 40 KB, which the client takes 0.5 ms to read


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What vectors a physical collection holds; None for one that holds payloads only."""

    dim: int
    token_dim: int = 0  # of the token vectors; 0 for none
    dense: str = "dense"
    sparse: str = "sparse"
    tokens: str = "tokens"


class QdrantStore:
    """The calls that collections are made of."""

    def __init__(self, options: QdrantOptions) -> None:
        self._options = options
        self._client = AsyncQdrantClient(
            host=options.host,
            grpc_port=options.grpc_port,
            prefer_grpc=True,
            https=options.tls,
            api_key=options.api_key,
            check_compatibility=False,  # would be a synchronous HTTP request
        )

    async def create(
        self, name: str, space: VectorSpace | None, indexes: Mapping[str, models.PayloadSchemaType]
    ) -> None:
        """Makes a physical collection with its payload indexes, which must come before the data."""
        vectors = {space.dense: _dense(space.dim, self._options.graph)} if space else {}
        if space and space.token_dim:
            vectors[space.tokens] = _tokens(space.token_dim)
        sparse = {space.sparse: models.SparseVectorParams()} if space else None
        async with self._errors():
            await self._client.create_collection(
                name,
                vectors_config=vectors,
                sparse_vectors_config=sparse,
                shard_number=self._options.shard_number,
                replication_factor=self._options.replication_factor,
            )
            tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
            await self._client.create_payload_index(name, "tenant", tenant, wait=True)
        await self.add_indexes(name, indexes)

    async def add_indexes(self, name: str, indexes: Mapping[str, models.PayloadSchemaType]) -> None:
        """Adds payload indexes; one that is there already stays."""
        for field, schema in indexes.items():
            async with self._errors():
                await self._client.create_payload_index(name, field, schema, wait=True)

    async def exists(self, name: str) -> bool:
        """Tells whether a physical collection of this name is there."""
        async with self._errors():
            return await self._client.collection_exists(name)

    async def drop(self, name: str) -> None:
        """Removes a physical collection, if it is there."""
        async with self._errors():
            await self._client.delete_collection(name)

    async def target_of(self, alias: str) -> str | None:
        """Returns the physical collection behind an alias."""
        async with self._errors():
            found = await self._client.get_aliases()
        return next((one.collection_name for one in found.aliases if one.alias_name == alias), None)

    async def point_alias(self, alias: str, name: str | None) -> None:
        """Moves an alias in one step; None removes it."""
        operations: list[models.CreateAliasOperation | models.DeleteAliasOperation] = []
        if await self.target_of(alias) is not None:
            operations.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
        if name is not None:
            created = models.CreateAlias(collection_name=name, alias_name=alias)
            operations.append(models.CreateAliasOperation(create_alias=created))
        async with self._errors():
            await self._client.update_collection_aliases(operations)

    async def upsert(self, name: str, points: Sequence[models.PointStruct]) -> None:
        """Writes points; when it returns, every replica that answers searches has them."""
        if points:
            async with self._errors():
                await self._client.upsert(name, list(points), wait=True, ordering=models.WriteOrdering.STRONG)

    async def delete(self, name: str, filter: models.Filter) -> None:
        """Deletes what passes; the filter always has conditions."""
        async with self._errors():
            selector = models.FilterSelector(filter=filter)
            await self._client.delete(name, selector, wait=True, ordering=models.WriteOrdering.STRONG)

    async def search(self, name: str, requests: Sequence[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        """Runs several queries in one round trip."""
        async with self._errors():
            found = await self._client.query_batch_points(name, requests)
        return [one.points for one in found]

    async def retrieve(self, name: str, ids: Sequence[str], payload: Sequence[str] | None) -> list[models.Record]:
        """Returns points by id; `payload` names what is wanted of it, None is all of it."""
        async with self._errors():
            return await self._client.retrieve(name, list(ids), with_payload=True if payload is None else list(payload))

    async def count(self, name: str, filter: models.Filter) -> int:
        """Counts what passes, exactly."""
        async with self._errors():
            return (await self._client.count(name, filter, exact=True)).count

    async def scroll(
        self, name: str, filter: models.Filter, payload: Sequence[str] | None, *, vectors: bool = False
    ) -> AsyncIterator[list[models.Record]]:
        """Streams what passes in batches, each one call; `payload` as in `retrieve`."""
        offset = None
        while True:
            async with self._errors():
                batch, offset = await self._client.scroll(
                    name,
                    filter,
                    limit=_VECTORS_A_SCROLL if vectors else SCROLL_BATCH,
                    offset=offset,
                    with_payload=True if payload is None else list(payload),
                    with_vectors=vectors,
                )
            if batch:
                yield batch
            if offset is None:
                return

    async def close(self) -> None:
        """Closes the channel."""
        await self._client.close()

    @asynccontextmanager
    async def _errors(self) -> AsyncIterator[None]:
        """Bounds a call and translates what the client raises, in one place."""
        where = f"qdrant at {self._options.host}:{self._options.grpc_port}"
        try:
            async with asyncio.timeout(self._options.timeout_s):
                yield
        except TimeoutError as error:
            raise IndexUnavailable(where, f"no answer within {self._options.timeout_s:g} s") from error
        except grpc.RpcError as error:
            code = error.code().name if isinstance(error, grpc.aio.AioRpcError) else type(error).__name__
            raise IndexUnavailable(where, code) from error
        except (ApiException, OSError) as error:
            raise IndexUnavailable(where, type(error).__name__) from error


def _tokens(dim: int) -> models.VectorParams:
    """Late interaction only ever scores given candidates, so there is no graph."""
    return models.VectorParams(
        size=dim,
        distance=models.Distance.DOT,
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        hnsw_config=models.HnswConfigDiff(m=0),
        on_disk=True,
    )


def _dense(dim: int, graph: GraphShape) -> models.VectorParams:
    hnsw = models.HnswConfigDiff(m=graph.m, ef_construct=graph.ef_construct)
    return models.VectorParams(size=dim, distance=models.Distance.DOT, hnsw_config=hnsw)
