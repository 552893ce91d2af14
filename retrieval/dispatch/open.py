"""Puts a queue, a breaker and an order of passages before each server of each backend; for the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from retrieval.dispatch.dispatcher import Dispatcher
from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.lane import Lane, LaneBounds
from retrieval.dispatch.service import BackendService
from retrieval.dispatch.types import Arranger
from retrieval.generation.backend import Backend
from retrieval.prefix.order import PrefixOrder
from retrieval.prefix.relevance import RelevanceOrder
from retrieval.settings.generation import BackendSettings, GenerationSettings


def open_dispatcher(servers: Mapping[str, Sequence[Backend]], settings: Callable[[], GenerationSettings]) -> Dispatcher:
    """Returns what sends requests to the configured backends; `settings` gives those in force.

    The caller closes it, and with it the servers.
    """
    services = {
        each.name: BackendService(
            each, [_endpoint(each, number, server, settings) for number, server in enumerate(servers[each.name])]
        )
        for each in settings().backends
    }
    return Dispatcher(services, lambda: settings().resilience)


def dispatcher_over(*backends: Backend) -> Dispatcher:
    """Returns what sends requests to these backends, each of one server, under default settings."""
    named = tuple(
        BackendSettings(name=each.name, kind="extractive", context_window_tokens=each.context_window_tokens)
        for each in backends
    )
    settings = GenerationSettings(default_backend=backends[0].name, backends=named)
    return open_dispatcher({each.name: [each] for each in backends}, lambda: settings)


def _endpoint(
    backend: BackendSettings, number: int, server: Backend, settings: Callable[[], GenerationSettings]
) -> Endpoint:
    initial = min(settings().queue.initial_concurrent, backend.max_concurrent)
    bounds = LaneBounds(backend.max_concurrent, backend.max_queued, initial)
    lane = Lane(backend.name, bounds, lambda: settings().queue)
    return Endpoint(server, number, lane, _arranger(backend), lambda: settings().resilience)


def _arranger(backend: BackendSettings) -> Arranger:
    return PrefixOrder(backend.prefix_cache_tokens) if backend.order == "prefix" else RelevanceOrder()
