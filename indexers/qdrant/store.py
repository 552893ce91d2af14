"""One client of a Qdrant server: every call has one total deadline, and every failure is an IndexUnavailable.

The client's own timeout starts anew with every phase of a call, so a server that sends a byte now and then would hold a
caller for ever (case VEC-22). Here the whole call is cancelled, which closes its stream.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import ceil
from typing import Any
from urllib.parse import urlsplit

import grpc
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException

from indexers.errors import IndexUnavailable
from indexers.qdrant.options import QdrantOptions
from indexers.qdrant.space import VectorSpace, sparse_params, vector_params

SCROLL_BATCH = 1_000
_VECTORS_A_SCROLL = 50  # a point's token vectors are some 40 KB, which the client takes 0.5 ms to read
_CONSISTENCY: dict[str, models.ReadConsistencyType | None] = {
    "one": None,
    "majority": models.ReadConsistencyType.MAJORITY,
    "quorum": models.ReadConsistencyType.QUORUM,
    "all": models.ReadConsistencyType.ALL,
}


class QdrantStore:
    """The calls that collections are made of."""

    def __init__(self, options: QdrantOptions) -> None:
        """Connects with the first call.

        Raises:
            OSError: the file with the certificates cannot be read.
        """
        self._options = options
        self._client = _client(options)
        cluster = options.cluster
        self._ordering = models.WriteOrdering(cluster.write_ordering)
        self._consistency = _CONSISTENCY[cluster.read_consistency]
        # Whoever decides by what he reads must not read an old copy.
        strict = models.ReadConsistencyType.MAJORITY if cluster.read_consistency == "one" else self._consistency
        self._strict = strict if cluster.replication_factor > 1 else self._consistency

    @property
    def options(self) -> QdrantOptions:
        """How the server is reached, and how collections are laid out."""
        return self._options

    async def create(
        self, name: str, space: VectorSpace | None, indexes: Mapping[str, models.PayloadSchemaType]
    ) -> None:
        """Makes a physical collection with its payload indexes, which must come before the data."""
        cluster = self._options.cluster
        async with self._errors():
            await self._client.create_collection(
                name,
                vectors_config=vector_params(space, self._options),
                sparse_vectors_config=sparse_params(space, self._options),
                shard_number=cluster.shard_number,
                replication_factor=cluster.replication_factor,
                write_consistency_factor=cluster.confirmations,
                on_disk_payload=self._options.storage.payload_on_disk,
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
        await self.point_aliases({alias: name})

    async def point_aliases(self, targets: Mapping[str, str | None]) -> None:
        """Moves several aliases, all of them in one step; None removes one."""
        operations: list[models.CreateAliasOperation | models.DeleteAliasOperation] = []
        for alias, name in targets.items():
            if await self.target_of(alias) is not None:
                operations.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
            if name is not None:
                created = models.CreateAlias(collection_name=name, alias_name=alias)
                operations.append(models.CreateAliasOperation(create_alias=created))
        async with self._errors():
            await self._client.update_collection_aliases(operations)

    async def upsert(self, name: str, points: Sequence[models.PointStruct], over: models.Filter | None = None) -> None:
        """Writes points; when it returns, as many replicas as must have them do.

        With `over`, a point that is there already is replaced only when it passes.
        """
        if points:
            async with self._errors():
                await self._client.upsert(name, list(points), wait=True, ordering=self._ordering, update_filter=over)

    async def set_payload(self, name: str, payload: Mapping[str, Any], filter: models.Filter) -> None:
        """Sets some keys of the points that pass, in one step: of two that change what they ask for, one finds it."""
        async with self._errors():
            selector = models.FilterSelector(filter=filter)
            await self._client.set_payload(
                name, dict(payload), selector, wait=True, ordering=models.WriteOrdering.STRONG
            )

    async def delete(self, name: str, filter: models.Filter) -> None:
        """Deletes what passes; the filter always has conditions."""
        async with self._errors():
            selector = models.FilterSelector(filter=filter)
            await self._client.delete(name, selector, wait=True, ordering=self._ordering)

    async def search(self, name: str, requests: Sequence[models.QueryRequest]) -> list[list[models.ScoredPoint]]:
        """Runs several queries in one round trip."""
        async with self._errors():
            found = await self._client.query_batch_points(name, requests, consistency=self._consistency)
        return [one.points for one in found]

    async def retrieve(
        self, name: str, ids: Sequence[str], payload: Sequence[str] | None, *, strictly: bool = False
    ) -> list[models.Record]:
        """Returns points by id; `payload` names what is wanted of it, None is all of it.

        `strictly` asks more than one copy where there are several.
        """
        async with self._errors():
            return await self._client.retrieve(
                name,
                list(ids),
                with_payload=True if payload is None else list(payload),
                consistency=self._strict if strictly else self._consistency,
            )

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
                    consistency=self._strict,
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


def _client(options: QdrantOptions) -> AsyncQdrantClient:
    rest = urlsplit(options.rest_address)
    roots = options.ca_file.read_bytes() if options.tls and options.ca_file else None
    verified: dict[str, Any] = {"verify": ssl.create_default_context(cadata=roots.decode())} if roots else {}
    return AsyncQdrantClient(
        host=options.host if options.prefer_grpc else rest.hostname,
        port=rest.port or 6333,
        grpc_port=options.grpc_port,
        prefer_grpc=options.prefer_grpc,
        https=options.tls if options.prefer_grpc else rest.scheme == "https",
        api_key=options.api_key,
        grpc_options={"root_certificates": roots} if roots else None,
        timeout=ceil(options.timeout_s),
        check_compatibility=False,  # would be a synchronous HTTP request
        **verified,
    )
