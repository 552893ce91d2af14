"""The part of `IndexService` that is about migrations. The tenant of every collection is the caller's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeAlias

import grpc.aio

from headrace.v1 import index_pb2_grpc, migrations_pb2
from retrieval.migrating.desk import MigrationDesk
from retrieval.server.calls import current_call
from retrieval.server.services.migration_calls import MigrationCalls

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class MigrationMethods(index_pb2_grpc.IndexServiceServicer):
    """The methods of migrations, for a class that serves the rest too."""

    _migrations: MigrationDesk

    async def MigrateCollection(  # noqa: N802 - the wire's name
        self, request: migrations_pb2.MigrateCollectionRequest, context: Context
    ) -> AsyncGenerator[migrations_pb2.MigrateCollectionResponse, None]:
        """Sends how far a migration is, until it has ended."""
        async with aclosing(self._calls().migrate(request)) as states:
            async for state in states:
                yield state

    async def GetMigration(  # noqa: N802
        self, request: migrations_pb2.GetMigrationRequest, context: Context
    ) -> migrations_pb2.GetMigrationResponse:
        """Says of which models a collection is."""
        return await self._calls().get(request)

    async def CancelMigration(  # noqa: N802
        self, request: migrations_pb2.CancelMigrationRequest, context: Context
    ) -> migrations_pb2.CancelMigrationResponse:
        """Stops a migration and removes what was begun."""
        return await self._calls().cancel(request)

    async def ForgetMigration(  # noqa: N802
        self, request: migrations_pb2.ForgetMigrationRequest, context: Context
    ) -> migrations_pb2.ForgetMigrationResponse:
        """Removes what served before."""
        return await self._calls().forget(request)

    def _calls(self) -> MigrationCalls:
        return MigrationCalls(self._migrations, current_call().identity.tenant)
