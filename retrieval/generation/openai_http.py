"""Sends a chat completion request over HTTP and gives the bytes of its stream.

`httpcore2` alone: the connections of `httpx2`, on which the `openai` client is built. Of those two nothing would be
used but the request, which takes ten times as long to make there; statuses, waits and events are all read here.
Proxies of the environment, redirects and cookies are none of ours: a prompt goes where the settings say.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress

import httpcore2

from retrieval.errors import ConfigError
from retrieval.generation.openai_address import chat_address, request_headers
from retrieval.generation.openai_failures import Failure, refusal
from retrieval.generation.openai_sockets import AsyncioNetwork
from retrieval.generation.pacing import Pacer, Silence
from retrieval.settings.generation import BackendSettings

DRAIN_S = 0.05  # how long the end of a body may come, for its connection to be used again

_OK = 200
_EVENTS = "text/event-stream"
_OTHER_TYPES = {"text/html": "a web page", "application/json": "one JSON document"}
_SHORT_BODY_BYTES = 65_536
# uvicorn, on which vLLM and SGLang run, closes a connection that was idle for 5 s.
_KEEP_ALIVE_S = 4.0
_OPENAI_HOST = "api.openai.com"
_FAULTS = (httpcore2.NetworkError, httpcore2.ProtocolError)


class ChatServer:
    """One server's chat completions."""

    def __init__(self, settings: BackendSettings, base_url: str) -> None:
        """Opens no connection yet.

        Raises:
            ConfigError: `base_url` is no address, or `tls_ca_file` cannot be read.
        """
        self._address = chat_address(settings, base_url)
        self._headers = request_headers(settings, self._address)
        self._url = httpcore2.URL(
            scheme=self._address.scheme, host=self._address.host, port=self._address.port, target=self._address.target
        )
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_trusted(settings, self._address.scheme),
            # How many requests go out is decided before they come here; a limit of its own would be a hidden queue.
            max_connections=None,
            max_keepalive_connections=settings.max_concurrent,
            keepalive_expiry=_KEEP_ALIVE_S,
            network_backend=AsyncioNetwork(),
        )

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own, which has fields that others refuse."""
        return self._address.host == _OPENAI_HOST

    async def close(self) -> None:
        """Closes the connections."""
        await self._pool.aclose()

    @asynccontextmanager
    async def ask(self, body: bytes, pacer: Pacer) -> AsyncIterator[EventStream]:
        """Sends a request, and gives the stream of its reply. Its connection is freed however the body is left.

        Raises:
            Failure: the server cannot be reached, refuses, or replies with something else than events.
            Silence: it did not reply in time.
        """
        headers = [*self._headers, (b"Content-Length", str(len(body)).encode())]
        request = httpcore2.Request("POST", self._url, headers=headers, content=body)
        try:
            response = await pacer.wait(self._pool.handle_async_request(request))
        except _FAULTS as error:
            raise _failure(error) from error
        try:
            await _check(response, pacer)
            async with aclosing(response.aiter_stream()) as chunks:
                yield EventStream(chunks, pacer)
        finally:
            await response.aclose()


class EventStream:
    """The body of a reply."""

    def __init__(self, chunks: AsyncGenerator[bytes, None], pacer: Pacer) -> None:
        self._chunks = chunks
        self._pacer = pacer

    async def read(self) -> bytes | None:
        """Returns the next bytes, None at the end.

        Raises:
            Failure: the connection broke.
            Silence: nothing came in time.
        """
        try:
            return await self._pacer.wait(anext(self._chunks, None))
        except _FAULTS as error:
            raise _failure(error) from error


def _trusted(settings: BackendSettings, scheme: str) -> ssl.SSLContext:
    """Returns whom to trust: the named authorities, or the system's."""
    if scheme != "https":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nobody, and nobody is asked; the system's take long to read
    try:
        return ssl.create_default_context(cafile=settings.tls_ca_file or None)
    except OSError as error:
        fault = f"{settings.tls_ca_file}: {error.strerror or error}; name a PEM file that can be read"
        raise ConfigError((f"generation.backends {settings.name!r}: tls_ca_file: {fault}",)) from error


async def _check(response: httpcore2.Response, pacer: Pacer) -> None:
    """Raises Failure unless the reply is a stream of events that is not compressed."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    if response.status != _OK:
        await _drain(response, headers, pacer)
        raise refusal(response.status, headers)
    media_type = headers.get("content-type", _EVENTS).partition(";")[0].strip().lower()
    if media_type != _EVENTS:
        what = _OTHER_TYPES.get(media_type, "something else")
        raise Failure(f"it sent {what} instead of an event stream; check its base_url", transient=False)
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Failure("it compressed its stream, although it was asked not to", transient=False)


async def _drain(response: httpcore2.Response, headers: Mapping[str, str], pacer: Pacer) -> None:
    """Reads a short body that nobody wants, since a connection is only used again after it."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) <= _SHORT_BODY_BYTES:
        pacer.hurry(DRAIN_S)
        with suppress(Silence, *_FAULTS):
            await pacer.wait(response.aread())


def _failure(error: Exception) -> Failure:
    """Returns what an error of the pool or of its connections means."""
    if isinstance(error, httpcore2.LocalProtocolError):
        return Failure("no request can be made of what is configured for it", transient=False)
    return Failure("the connection to it failed", transient=True)
