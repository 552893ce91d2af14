"""Request and identity to what the request reads: the collection in its newest state, the scope, the filter."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from encoders.types import AsyncDenseEncoder
from indexers.errors import CollectionMoved
from indexers.index import Catalog, Index
from indexers.schema import coerce_filter
from indexers.types import CollectionKey, Epoch
from retrieval.admission import Admission
from retrieval.clock import Stage
from retrieval.collection_encoders import CollectionEncoders
from retrieval.deadline import Deadline
from retrieval.route import Priority
from retrieval.scope import ModelRevisions, Scope
from retrieval.trace import Trace
from retrieval.types import RetrieveRequest


@dataclass(frozen=True, slots=True)
class Target:
    """What an admitted request reads."""

    index: Index
    encoder: AsyncDenseEncoder  # of the index's vectors
    scope: Scope
    read_at_ns: int  # when the epoch in the scope was the newest, on the clock of time.monotonic_ns


@dataclass(frozen=True, slots=True)
class Gate:
    """What lets requests in."""

    admission: Admission
    catalog: Catalog
    encoders: CollectionEncoders
    models: ModelRevisions  # but for the dense one, which is the collection's
    give_way: Callable[[], None]
    """Is told of each request, so that bulk work rests also when nothing has to be encoded."""

    @asynccontextmanager
    async def admitted(
        self,
        request: RetrieveRequest,
        trace: Trace,
        deadline: Deadline,
        priority: Priority = Priority.INTERACTIVE,
    ) -> AsyncIterator[Target]:
        """Holds a permit while the body runs; the time until then is charged to ADMIT."""
        self.give_way()
        async with AsyncExitStack() as held:
            with trace.clock.stage(Stage.ADMIT):
                waited_ns = await self.admission.acquire(deadline, request.tenant, priority)
                held.callback(self.admission.release)
                trace.clock.charge(queue_ns=waited_ns)
                async with deadline.bound(Stage.ADMIT):
                    target = await self._open(request)
            yield target

    async def _open(self, request: RetrieveRequest) -> Target:
        index, read_at_ns, epoch = await self._newest(request)
        definition = index.definition
        dense = f"{definition.dense_model_id}@{definition.dense_revision}"
        scope = Scope(
            tenant=request.tenant,
            data_policy=request.data_policy,
            collection=request.collection,
            incarnation=definition.created_at.isoformat(),
            epoch=epoch,
            models=replace(self.models, dense=dense),
            filter=None if request.filter is None else coerce_filter(request.filter, definition.fields),
        )
        return Target(index, self.encoders.of(definition), scope, read_at_ns)

    async def _newest(self, request: RetrieveRequest) -> tuple[Index, int, Epoch]:
        while True:
            index = await self.catalog.open(CollectionKey(request.tenant, request.collection))
            read_at_ns = time.monotonic_ns()
            # Results are kept by epoch, so it must be the newest; where nothing is kept, the search itself finds out.
            try:
                epoch = await index.current_epoch() if request.thresholds.use_cache else index.epoch
            except CollectionMoved:
                continue
            return index, read_at_ns, epoch
