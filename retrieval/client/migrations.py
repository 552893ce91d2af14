"""The calls of the client that are about migrations: one method an rpc, messages of `headrace.v1` both ways."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import grpc.aio

from headrace.v1 import index_pb2_grpc, migrations_pb2


class Migrations:
    """The migrations of one server; made by `Client`."""

    def __init__(
        self, stub: index_pb2_grpc.IndexServiceAsyncStub, metadata: grpc.aio.Metadata, timeout_s: float | None
    ) -> None:
        self._stub = stub
        self._metadata = metadata
        self._timeout_s = timeout_s

    async def migrate(
        self, request: migrations_pb2.MigrateCollectionRequest
    ) -> AsyncGenerator[migrations_pb2.MigrateCollectionResponse, None]:
        """Yields how far a migration is until it has ended, however long that takes; it goes on without the caller."""
        call = self._stub.MigrateCollection(request, metadata=self._metadata)
        try:
            async for state in call:
                yield state
        finally:
            call.cancel()

    async def get(self, request: migrations_pb2.GetMigrationRequest) -> migrations_pb2.GetMigrationResponse:
        """Says of which models a collection is."""
        return await self._stub.GetMigration(request, metadata=self._metadata, timeout=self._timeout_s)

    async def cancel(self, request: migrations_pb2.CancelMigrationRequest) -> migrations_pb2.CancelMigrationResponse:
        """Stops a migration and removes what was begun."""
        return await self._stub.CancelMigration(request, metadata=self._metadata)

    async def forget(self, request: migrations_pb2.ForgetMigrationRequest) -> migrations_pb2.ForgetMigrationResponse:
        """Removes what served before."""
        return await self._stub.ForgetMigration(request, metadata=self._metadata)
