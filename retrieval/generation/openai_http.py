"""Sends a chat completion request over HTTP and gives the bytes of its stream; the only module with an HTTP client.

`httpx2` itself, not the `openai` client that is built on it: of that we would use the request alone, which costs ten
times as much there, since statuses, retries, timeouts and events are all read here. Redirects are not followed, because
a prompt must not go where no rule has looked.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress

import httpx2

from retrieval.errors import ConfigError
from retrieval.generation.openai_failures import Failure, refusal
from retrieval.generation.openai_sockets import DirectTransport
from retrieval.generation.pacing import Pacer, Silence
from retrieval.settings.generation import BackendSettings

DRAIN_S = 0.05  # how long the end of a body may come, for its connection to be used again

_EVENTS = "text/event-stream"
_OTHER_TYPES = {"text/html": "a web page", "application/json": "one JSON document"}
_SHORT_BODY_BYTES = 65_536
# uvicorn, on which vLLM and SGLang run, closes a connection that was idle for 5 s.
_KEEP_ALIVE_S = 4.0
_OPENAI_HOST = "api.openai.com"


class ChatServer:
    """One server's chat completions."""

    def __init__(self, settings: BackendSettings, base_url: str) -> None:
        """Opens no connection yet.

        Raises:
            ConfigError: `tls_ca_file` cannot be read.
        """
        url = httpx2.URL(base_url)
        self._url = url.copy_with(path=url.path.rstrip("/") + "/chat/completions")
        direct = DirectTransport(_trusted(settings, url), settings.max_concurrent, _KEEP_ALIVE_S)
        self._client = httpx2.AsyncClient(
            headers={
                "accept": _EVENTS,
                "accept-encoding": "identity",  # what compresses a stream holds it back
                "authorization": f"Bearer {settings.api_key.get_secret_value() or 'none'}",
                "content-type": "application/json",
                "user-agent": "headrace",
            },
            timeout=None,  # the pacer bounds every wait
            transport=direct,
        )

    @property
    def takes_cache_key(self) -> bool:
        """Whether the server documents `prompt_cache_key`."""
        return self._url.host == _OPENAI_HOST

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def ask(self, body: bytes, pacer: Pacer) -> AsyncIterator[EventStream]:
        """Sends a request, and gives the stream of its reply. Its connection is freed however the body is left.

        Raises:
            Failure: the server cannot be reached, refuses, or replies with something else than events.
            Silence: it did not reply in time.
        """
        request = self._client.build_request("POST", self._url, content=body)
        with _translated():
            response = await pacer.wait(self._client.send(request, stream=True))
        try:
            await _check(response, pacer)
            async with aclosing(response.aiter_raw()) as chunks:
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
        with _translated():
            return await self._pacer.wait(anext(self._chunks, None))


def _trusted(settings: BackendSettings, url: httpx2.URL) -> ssl.SSLContext:
    """Returns whom to trust: the named authorities, or the system's."""
    if url.scheme != "https":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nobody, and nobody is asked; the system's take long to read
    try:
        return ssl.create_default_context(cafile=settings.tls_ca_file or None)
    except OSError as error:
        fault = f"{settings.tls_ca_file}: {error.strerror or error}; name a PEM file that can be read"
        raise ConfigError((f"generation.backends {settings.name!r}: tls_ca_file: {fault}",)) from error


async def _check(response: httpx2.Response, pacer: Pacer) -> None:
    """Raises Failure unless the reply is a stream of events that is not compressed."""
    if response.status_code != httpx2.codes.OK:
        await _drain(response, pacer)
        raise refusal(response.status_code, response.headers)
    media_type = response.headers.get("content-type", _EVENTS).partition(";")[0].strip().lower()
    if media_type != _EVENTS:
        what = _OTHER_TYPES.get(media_type, "something else")
        raise Failure(f"it sent {what} instead of an event stream; check its base_url", transient=False)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Failure("it compressed its stream, although it was asked not to", transient=False)


async def _drain(response: httpx2.Response, pacer: Pacer) -> None:
    """Reads a short body that nobody wants, since a connection is only used again after it."""
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) <= _SHORT_BODY_BYTES:
        pacer.hurry(DRAIN_S)
        with suppress(Silence, httpx2.HTTPError):
            await pacer.wait(response.aread())


@contextmanager
def _translated() -> Iterator[None]:
    """Turns what the client and its transport raise into Failure."""
    try:
        yield
    except httpx2.TransportError as error:
        raise Failure("the connection to it failed", transient=True) from error
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        raise Failure("the client could not talk to it", transient=False) from error
