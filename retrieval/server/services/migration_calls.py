"""The calls about migrations as messages: the server answers them, and the command line when there is none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from headrace.v1 import migrations_pb2
from indexers.types import CollectionKey
from retrieval.migrating.desk import MigrationDesk
from retrieval.server.convert.migrations import migration_to_pb, standing_to_pb, wanted_from_pb
from retrieval.server.convert.texts import checked_key


class MigrationCalls:
    """Converts, calls, converts."""

    def __init__(self, desk: MigrationDesk, tenant: str) -> None:
        self._desk = desk
        self._tenant = tenant

    async def migrate(
        self, request: migrations_pb2.MigrateCollectionRequest
    ) -> AsyncGenerator[migrations_pb2.MigrateCollectionResponse, None]:
        """Yields how far a migration is, until it has ended; why it has failed is in the last message, and raised."""
        async with aclosing(self._desk.migrate(self._key(request.collection), wanted_from_pb(request))) as states:
            async for state in states:
                yield migrations_pb2.MigrateCollectionResponse(migration=migration_to_pb(state))

    async def get(self, request: migrations_pb2.GetMigrationRequest) -> migrations_pb2.GetMigrationResponse:
        """Says of which models a collection is."""
        return standing_to_pb(*await self._desk.standing(self._key(request.collection)))

    async def cancel(self, request: migrations_pb2.CancelMigrationRequest) -> migrations_pb2.CancelMigrationResponse:
        """Stops a migration and removes what was begun."""
        await self._desk.cancel(self._key(request.collection))
        return migrations_pb2.CancelMigrationResponse()

    async def forget(self, request: migrations_pb2.ForgetMigrationRequest) -> migrations_pb2.ForgetMigrationResponse:
        """Removes what served before."""
        await self._desk.forget(self._key(request.collection))
        return migrations_pb2.ForgetMigrationResponse()

    def _key(self, collection: str) -> CollectionKey:
        return checked_key(self._tenant, collection, "collection")
