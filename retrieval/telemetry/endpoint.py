"""The Prometheus endpoint: an HTTP server of its own, in a thread of its own, so a scrape never waits for a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

from retrieval.errors import ConfigError


@contextmanager
def metrics_endpoint(registry: CollectorRegistry, host: str, port: int) -> Iterator[None]:
    """Serves the registry while the body runs; port 0 serves nothing.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    if port == 0:
        yield
        return
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise ConfigError((f"server.metrics_port: cannot listen on {host}:{port}: {error.strerror}",)) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
