"""Runs a server: opens, listens, says that it serves, waits for a signal, drains, closes.

SIGTERM and SIGINT stop it; SIGHUP reloads the settings. Health says NOT_SERVING until everything is loaded, and again
from the moment a stop is asked for, while calls that run may end.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import grpc.aio
import structlog
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from headrace.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    encoding_pb2,
    encoding_pb2_grpc,
    index_pb2,
    index_pb2_grpc,
    retrieval_pb2,
    retrieval_pb2_grpc,
)
from retrieval.caching.open import check_sharing
from retrieval.errors import ConfigError
from retrieval.identity import check_bind
from retrieval.jobs.child import WorkerLaunch
from retrieval.live import LiveSettings
from retrieval.server.app import App, build
from retrieval.server.draining import Drain
from retrieval.server.endpoint_file import endpoint_file
from retrieval.server.health import Health
from retrieval.server.interpreter import settle
from retrieval.server.listening import channel_options, listen_tcp, listening_unix
from retrieval.server.measuring import measuring_costs
from retrieval.server.rules_check import tell_idle_rules
from retrieval.server.warming import warming
from retrieval.settings.load import Loaded
from retrieval.telemetry.endpoint import metrics_endpoint
from retrieval.telemetry.log import configure_log

SERVICES = tuple(
    service.full_name
    for module in (retrieval_pb2, encoding_pb2, index_pb2, admin_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
)
_CLOSE_S = 1.5  # for the last replies and statuses to be sent; over as soon as they are
_log = structlog.get_logger("headrace")


def run_server(load: Callable[[], Loaded], workers: WorkerLaunch | None = None) -> None:
    """Serves until a signal stops it. `load` reads the settings, now and at each reload.

    `workers` says how workers of jobs are started; without it the server starts none.

    Raises:
        ConfigError: the settings cannot be used, or an address is taken.
        DataFolderLocked: another process holds the data folder.
        ModelError: a model cannot be used.
    """
    live = LiveSettings(load(), load)
    settings = live.current
    check_bind(settings)
    check_sharing(settings)
    configure_log(settings.log.level, settings.log.format)
    live.subscribe(lambda changed: configure_log(changed.log.level, changed.log.format))
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run(live, workers))


async def run(live: LiveSettings, workers: WorkerLaunch | None = None) -> None:
    """Serves in the running event loop until a signal stops it."""
    settings = live.current.server
    stop = _signals(live)
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(build(live))
        stack.enter_context(metrics_endpoint(app.metrics.registry, settings.metrics_host, settings.metrics_port))
        http_port = await stack.enter_async_context(_http(app, live))
        server = grpc.aio.server(interceptors=[app.guard], options=channel_options(settings))
        healthy = await _register(server, app, settings.reflection)
        address = listen_tcp(server, settings)
        stack.enter_context(listening_unix(server, settings.unix_socket))
        await server.start()
        end_jobs = await stack.enter_async_context(app.jobs.working(workers, app.authenticator, address))
        stack.push_async_callback(_stop, server, healthy, app.drain, settings.grace_s)
        stack.callback(end_jobs)
        await app.warm_up()
        await tell_idle_rules(app.engines.catalog, live.current)
        settle()
        await stack.enter_async_context(healthy.following(app.scheduler.workers))
        stack.enter_context(endpoint_file(live.current.data.folder, address))
        _log.info(
            "serving",
            address=address,
            unix_socket=settings.unix_socket,
            metrics_port=settings.metrics_port,
            http_port=http_port,
        )
        await stack.enter_async_context(measuring_costs(app.models, app.scheduler))
        services = app.engines.dispatcher.services
        await stack.enter_async_context(warming(services, live.current.generation.instructions))
        await stop.wait()
        _log.info("stopping", grace_s=settings.grace_s)
    _log.info("stopped")


async def _register(server: grpc.aio.Server, app: App, reflect: bool) -> Health:
    retrieval_pb2_grpc.add_RetrievalServiceServicer_to_server(app.retrieval, server)
    encoding_pb2_grpc.add_EncodingServiceServicer_to_server(app.encoding, server)
    index_pb2_grpc.add_IndexServiceServicer_to_server(app.index, server)
    admin_pb2_grpc.add_AdminServiceServicer_to_server(app.admin, server)
    healthy = Health(SERVICES)
    health_pb2_grpc.add_HealthServicer_to_server(healthy.servicer, server)
    await healthy.set(serving=False)
    if reflect:
        names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
    return healthy


@asynccontextmanager
async def _http(app: App, live: LiveSettings) -> AsyncIterator[int | None]:
    settings = live.current.http
    if not settings.port:
        yield None
        return
    # Imported here: a server that speaks gRPC alone needs no web framework.
    from retrieval.server.http.listener import http_listener  # noqa: PLC0415

    async with http_listener(app, settings, live) as port:
        yield port


async def _stop(server: grpc.aio.Server, healthy: Health, drain: Drain, grace_s: float) -> None:
    await healthy.stop()
    await drain.finish(grace_s)
    await server.stop(_CLOSE_S)


def _signals(live: LiveSettings) -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, live)
    return stop


def _reload(live: LiveSettings) -> None:
    try:
        reload = live.reload()
    except ConfigError as error:
        _log.error("reload_refused", faults=list(error.faults))
    else:
        _log.info("reloaded", changed=list(reload.changed), needs_restart=list(reload.needs_restart))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns uvloop's, which answers about a quarter faster; None, for the standard loop, where it does not exist."""
    try:
        import uvloop  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
