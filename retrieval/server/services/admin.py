"""Serves `AdminService`: what this server is and how it is set."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc.aio

from headrace.v1 import admin_pb2, admin_pb2_grpc
from indexers.index import Catalog
from retrieval.live import LiveSettings
from retrieval.server.calls import current_call
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

    def __init__(self, about: About, catalog: Catalog, live: LiveSettings) -> None:
        self._about = about
        self._catalog = catalog
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


def _settings(loaded: Loaded, tenant: str) -> list[admin_pb2.Setting]:
    return [_setting(shown) for shown in shown_settings(loaded, tenant)]


def _setting(shown: ShownSetting) -> admin_pb2.Setting:
    return admin_pb2.Setting(path=shown.path, value=shown.value, origin=shown.origin, reloadable=shown.reloadable)
