"""A loopback server that speaks the part of Qdrant's gRPC that Headrace uses. It is not Qdrant's engine.

Good for what lies between client and server: deadlines, failures, the order of calls, conversions. What Qdrant itself
does is tested by the same contract against a real server, where one is named by QDRANT_URL.
"""

# ruff: noqa: N802  # the methods are named by the protocol
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc as grpcio
from qdrant_client import grpc

from tests.fakes.qdrant_engine import StoredCollection, StoredPoint


class FakeQdrant(grpc.CollectionsServicer, grpc.PointsServicer):
    """The whole state of the fake server, and switches that make it fail."""

    def __init__(self) -> None:
        self.collections: dict[str, StoredCollection] = {}
        self.aliases: dict[str, str] = {}
        self.calls: list[str] = []
        self.fail_next: dict[str, grpcio.StatusCode] = {}
        self.dies_after: int | None = None  # calls that are still answered; None for all
        self.fails_after_alias = False  # whether the next change of a payload fails once an alias has moved
        self.hang: set[str] = set()
        self.before: dict[str, asyncio.Event] = {}  # calls wait until it has happened
        self.cancelled: list[str] = []
        self.declared: dict[str, Any] = {}  # the parameters of dense vectors by name, as they came last
        self.created: dict[str, Any] = {}  # the requests that made collections
        self.asked: list[Any] = []  # the queries of the last search
        self.reads: list[Any] = []  # every read by ids
        self.writes: list[tuple[str, Any]] = []  # every write of points, by the name of the call
        self.api_keys: set[str] = set()  # that came with calls
        self.without_tenant: list[str] = []  # calls whose filter does not begin with a tenant

    async def _enter(self, name: str, context: Any) -> None:
        self.calls.append(name)
        self.api_keys |= {value for key, value in context.invocation_metadata() if key == "api-key"}
        if self.dies_after is not None:
            self.dies_after -= 1
            if self.dies_after < 0:
                await context.abort(grpcio.StatusCode.UNAVAILABLE, "nobody hears the writer any more")
        if name in self.hang:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
        if name in self.before:
            await self.before[name].wait()
        if name in self.fail_next:
            await context.abort(self.fail_next.pop(name), "as told")

    async def _collection(self, name: str, context: Any) -> StoredCollection:
        found = self.collections.get(self.aliases.get(name, name))
        if found is None:
            await context.abort(grpcio.StatusCode.NOT_FOUND, f"Collection `{name}` doesn't exist!")
            raise AssertionError
        return found

    def _check_tenant(self, name: str, filter: Any) -> None:
        if not filter.must or filter.must[0].field.key != "tenant":
            self.without_tenant.append(name)

    async def Create(self, request: Any, context: Any) -> Any:
        await self._enter("Create", context)
        if request.collection_name in self.collections:
            await context.abort(grpcio.StatusCode.ALREADY_EXISTS, "exists")
        dense, sparse = request.vectors_config.params_map.map, request.sparse_vectors_config.map
        self.collections[request.collection_name] = StoredCollection({*dense, *sparse})
        self.declared.update(dense)
        self.created[request.collection_name] = request
        return grpc.CollectionOperationResponse(result=True)

    async def CollectionExists(self, request: Any, context: Any) -> Any:
        await self._enter("CollectionExists", context)
        exists = self.aliases.get(request.collection_name, request.collection_name) in self.collections
        return grpc.CollectionExistsResponse(result=grpc.CollectionExists(exists=exists))

    async def UpdateAliases(self, request: Any, context: Any) -> Any:
        await self._enter("UpdateAliases", context)
        for action in request.actions:
            if action.HasField("delete_alias"):
                del self.aliases[action.delete_alias.alias_name]
            else:
                if self.fails_after_alias:
                    self.fail_next["SetPayload"] = grpcio.StatusCode.UNAVAILABLE
                self.aliases[action.create_alias.alias_name] = action.create_alias.collection_name
        return grpc.CollectionOperationResponse(result=True)

    async def ListAliases(self, _: Any, context: Any) -> Any:
        await self._enter("ListAliases", context)
        described = [grpc.AliasDescription(alias_name=a, collection_name=c) for a, c in self.aliases.items()]
        return grpc.ListAliasesResponse(aliases=described)

    async def CreateFieldIndex(self, request: Any, context: Any) -> Any:
        await self._enter("CreateFieldIndex", context)
        (await self._collection(request.collection_name, context)).indexes[request.field_name] = request
        return _done()

    async def Upsert(self, request: Any, context: Any) -> Any:
        await self._enter("Upsert", context)
        self.writes.append(("Upsert", request))
        collection = await self._collection(request.collection_name, context)
        for point in request.points:
            try:
                collection.upsert(point, request.update_filter if request.HasField("update_filter") else None)
            except KeyError as name:
                await context.abort(grpcio.StatusCode.INVALID_ARGUMENT, f"Not existing vector name error: {name}")
        return _done()

    async def SetPayload(self, request: Any, context: Any) -> Any:
        await self._enter("SetPayload", context)
        self.writes.append(("SetPayload", request))
        self._check_tenant("SetPayload", request.points_selector.filter)
        collection = await self._collection(request.collection_name, context)
        collection.set_payload(request.points_selector.filter, request.payload)
        return _done()

    async def Delete(self, request: Any, context: Any) -> Any:
        if isinstance(request, grpc.DeleteCollection):
            await self._enter("DeleteCollection", context)
            existed = self.collections.pop(request.collection_name, None) is not None
            return grpc.CollectionOperationResponse(result=existed)
        await self._enter("Delete", context)
        self.writes.append(("Delete", request))
        self._check_tenant("Delete", request.points.filter)
        collection = await self._collection(request.collection_name, context)
        for stored in collection.passing(request.points.filter):
            del collection.points[stored.point.id.uuid]
        return _done()

    async def Get(self, request: Any, context: Any) -> Any:
        await self._enter("Get", context)
        self.reads.append(request)
        collection = await self._collection(request.collection_name, context)
        found = [collection.points[one.uuid] for one in request.ids if one.uuid in collection.points]
        return grpc.GetResponse(result=_retrieved(found, request))

    async def Count(self, request: Any, context: Any) -> Any:
        await self._enter("Count", context)
        self._check_tenant("Count", request.filter)
        collection = await self._collection(request.collection_name, context)
        return grpc.CountResponse(result=grpc.CountResult(count=len(collection.passing(request.filter))))

    async def Scroll(self, request: Any, context: Any) -> Any:
        await self._enter("Scroll", context)
        self._check_tenant("Scroll", request.filter)
        collection = await self._collection(request.collection_name, context)
        after = request.offset.uuid
        passing = [one for one in collection.passing(request.filter) if one.point.id.uuid >= after]
        page, rest = passing[: request.limit], passing[request.limit :]
        response = grpc.ScrollResponse(result=_retrieved(page, request))
        if rest:
            response.next_page_offset.CopyFrom(rest[0].point.id)
        return response

    async def QueryBatch(self, request: Any, context: Any) -> Any:
        await self._enter("QueryBatch", context)
        collection = await self._collection(request.collection_name, context)
        results = []
        self.asked = list(request.query_points)
        for query in request.query_points:
            for one in (query, *query.prefetch):
                self._check_tenant("QueryBatch", one.filter)
            hits = collection.query(query)
            points = [
                grpc.ScoredPoint(id=one.point.id, score=score, payload=_payload(one, query.with_payload))
                for one, score in hits
            ]
            results.append(grpc.BatchResult(result=points))
        return grpc.QueryBatchResponse(result=results)


@asynccontextmanager
async def serving(fake: FakeQdrant, tls: grpcio.ServerCredentials | None = None) -> AsyncIterator[int]:
    """Serves on a free loopback port, which it gives."""
    server = grpcio.aio.server()
    grpc.add_CollectionsServicer_to_server(fake, server)  # type: ignore[no-untyped-call]
    grpc.add_PointsServicer_to_server(fake, server)  # type: ignore[no-untyped-call]
    address = "127.0.0.1:0"
    port = server.add_secure_port(address, tls) if tls else server.add_insecure_port(address)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


def _done() -> Any:
    return grpc.PointsOperationResponse(result=grpc.UpdateResult(status=grpc.UpdateStatus.Completed))


def _payload(stored: StoredPoint, selector: Any) -> dict[str, Any]:
    kept: Iterable[str] = selector.include.fields if selector.HasField("include") else stored.point.payload
    if not selector.enable and not selector.HasField("include"):
        kept = ()
    return {name: stored.point.payload[name] for name in kept if name in stored.point.payload}


def _retrieved(found: list[StoredPoint], request: Any) -> list[Any]:
    points = []
    for stored in found:
        point = grpc.RetrievedPoint(id=stored.point.id, payload=_payload(stored, request.with_payload))
        if request.with_vectors.enable:
            dense = grpc.VectorOutput(dense=grpc.DenseVector(data=stored.dense()))
            sparse = stored.sparse()
            vector = grpc.SparseVector(indices=list(sparse), values=list(sparse.values()))
            both = {"dense": dense, "sparse": grpc.VectorOutput(sparse=vector)}
            if tokens := stored.tokens():
                rows = grpc.MultiDenseVector(vectors=[grpc.DenseVector(data=row) for row in tokens])
                both["tokens"] = grpc.VectorOutput(multi_dense=rows)
            point.vectors.CopyFrom(grpc.VectorsOutput(vectors=grpc.NamedVectorsOutput(vectors=both)))
        points.append(point)
    return points
