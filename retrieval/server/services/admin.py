"""Serves `AdminService`: what this server is, how it is set, and what its caches hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc.aio

from headrace.v1 import admin_pb2, admin_pb2_grpc
from indexers.index import Catalog
from indexers.types import CollectionKey
from retrieval.caching.caches import Caches
from retrieval.caching.operating import figures_of, forget
from retrieval.live import LiveSettings
from retrieval.server.calls import current_call
from retrieval.server.convert.caches import (
    answer_key_from_pb,
    chosen_from_pb,
    explained_to_pb,
    figures_to_pb,
    forgotten_to_pb,
    risk_to_pb,
    shared_to_pb,
)
from retrieval.server.convert.collections import collection_to_pb
from retrieval.server.convert.models import ServedModel, model_to_pb
from retrieval.settings.load import Loaded
from retrieval.settings.shown import ShownSetting, shown_settings

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class About:
    """What a server runs, as far as it does not change; `ns_per_token` gives the measured cost by model."""

    version: str
    models: Sequence[ServedModel]
    workers: int
    backends: Sequence[str]
    ns_per_token: Callable[[], Mapping[str, float]]


class AdminService(admin_pb2_grpc.AdminServiceServicer):
    """Converts, calls, converts."""

    def __init__(self, about: About, catalog: Catalog, caches: Caches, live: LiveSettings) -> None:
        self._about = about
        self._catalog = catalog
        self._caches = caches
        self._live = live
        self._started_ns = time.monotonic_ns()

    async def GetInfo(  # noqa: N802 - the wire's name
        self, request: admin_pb2.GetInfoRequest, context: Context
    ) -> admin_pb2.GetInfoResponse:
        """Returns what this server runs; the settings only to an administrator."""
        identity = current_call().identity
        costs = self._about.ns_per_token()
        indexes = await self._catalog.list(identity.tenant)
        return admin_pb2.GetInfoResponse(
            version=self._about.version,
            uptime_s=(time.monotonic_ns() - self._started_ns) / 1e9,
            models=[model_to_pb(model, costs.get(model.model_id, 0.0)) for model in self._about.models],
            collections=[collection_to_pb(index, await index.count(None)) for index in indexes],
            settings=_settings(self._live.origins, identity.tenant) if "admin" in identity.roles else [],
            encoder_workers=self._about.workers,
            backends=self._about.backends,
        )

    async def ReloadConfig(  # noqa: N802
        self, request: admin_pb2.ReloadConfigRequest, context: Context
    ) -> admin_pb2.ReloadConfigResponse:
        """Reads the configuration again and applies it whole or not at all."""
        reload = self._live.reload()
        # What needs a restart is shown as it is asked for, since that is what the restart will bring.
        asked = {setting.path: setting for setting in _settings(reload.asked, current_call().identity.tenant)}
        return admin_pb2.ReloadConfigResponse(
            changed=[asked[path] for path in reload.changed],
            needs_restart=[asked[path] for path in reload.needs_restart],
        )

    async def GetCacheStats(  # noqa: N802
        self, request: admin_pb2.GetCacheStatsRequest, context: Context
    ) -> admin_pb2.GetCacheStatsResponse:
        """Returns how the caches fare, and what was learned of the caller's collections."""
        accepted = self._live.current.cache.answers.max_error_rate
        learned = self._caches.answers.operations.learned(current_call().identity.tenant)
        return admin_pb2.GetCacheStatsResponse(
            caches=[figures_to_pb(figures) for figures in figures_of(self._caches)],
            shared=shared_to_pb(self._caches.shared.stats()),
            risks=[risk_to_pb(collection, one, accepted) for collection, one in learned],
        )

    async def InvalidateCache(  # noqa: N802
        self, request: admin_pb2.InvalidateCacheRequest, context: Context
    ) -> admin_pb2.InvalidateCacheResponse:
        """Forgets cached values of the caller's tenant."""
        return forgotten_to_pb(await forget(self._caches, chosen_from_pb(current_call().identity.tenant, request)))

    async def ExplainCacheKey(  # noqa: N802
        self, request: admin_pb2.ExplainCacheKeyRequest, context: Context
    ) -> admin_pb2.ExplainCacheKeyResponse:
        """Shows an answer, and compares what it was made from with what the collection holds now."""
        key = answer_key_from_pb(current_call().identity.tenant, request.collection, request.key)
        index = await self._catalog.open(CollectionKey(key.tenant, key.collection))
        located = await self._caches.answers.operations.find(key)
        return explained_to_pb(located, await index.fetch([one.chunk_id for one in located.answer.seen]))


def _settings(loaded: Loaded, tenant: str) -> list[admin_pb2.Setting]:
    return [_setting(shown) for shown in shown_settings(loaded, tenant)]


def _setting(shown: ShownSetting) -> admin_pb2.Setting:
    return admin_pb2.Setting(path=shown.path, value=shown.value, origin=shown.origin, reloadable=shown.reloadable)
