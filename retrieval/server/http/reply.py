"""The reply to one request: a JSON document, or a stream of server-sent events that begins with its first event.

A stream sends nothing, not even its status, until there is something to say, so that a failure before has a status of
its own. Writers wait for a reader who is slow, so nothing piles up for him here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from starlette.types import Send

from retrieval.server.calls import REQUEST_ID, Call
from retrieval.server.http.failures import error_body, http_status, retry_headers
from retrieval.server.status import Failure

_COMMENT = b": keep-alive\n\n"
_STREAM = [("content-type", "text/event-stream; charset=utf-8"), ("x-accel-buffering", "no")]
_JSON = [("content-type", "application/json")]


def compact(content: object) -> str:
    """Returns JSON without white space; all characters beyond ASCII are escaped, so that no text can break it."""
    return json.dumps(content, separators=(",", ":"))


class Reply:
    """Writes the reply; `timing` is the `Server-Timing` header, set before the reply begins.

    `names` are fields of ours by the endpoint's own, for errors.
    """

    def __init__(self, send: Send, call: Call, names: Mapping[str, str]) -> None:
        self.timing = ""
        self._send = send
        self._call = call
        self._names = names
        self._writing = asyncio.Lock()
        self._started = self._said = False  # a stream that has begun may have said nothing yet, only that it lives
        self._last_s = asyncio.get_running_loop().time()

    async def json(self, content: object, status: int = 200) -> None:
        """Replies with a document."""
        await self._whole(status, compact(content), ())

    async def event(self, data: bytes) -> None:
        """Sends one or more events."""
        async with self._writing:
            self._said = True
            await self._stream(data)

    async def end(self) -> None:
        """Ends the stream."""
        async with self._writing:
            await self._body(b"", more=False)

    async def refuse(self, failure: Failure) -> None:
        """Tells of a failure: with a status of its own, or within a stream that has begun, which then breaks off."""
        async with self._writing:
            if self._started:
                told = error_body(failure, self._names, partial=self._said)
                await self._stream(f"data: {compact(told)}\n\n".encode())
                return
        told, headers = error_body(failure, self._names), retry_headers(failure)
        await self._whole(http_status(failure), compact(told), headers)

    @asynccontextmanager
    async def kept_alive(self, every_s: float) -> AsyncIterator[None]:
        """Sends a comment whenever the stream was silent that long, while the body runs."""
        task = asyncio.create_task(self._beat(every_s))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _beat(self, every_s: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(0.0, self._last_s + every_s - loop.time()))
            if self._last_s + every_s <= loop.time():
                async with self._writing:
                    await self._stream(_COMMENT)

    async def _whole(self, status: int, text: str, headers: Iterable[tuple[str, str]]) -> None:
        body = text.encode()
        length = ("content-length", str(len(body)))
        await self._start(status, [*_JSON, length, *headers])
        await self._body(body, more=False)

    async def _stream(self, data: bytes) -> None:
        if not self._started:
            await self._start(200, _STREAM)
        await self._body(data, more=True)
        self._last_s = asyncio.get_running_loop().time()

    async def _start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self._started = True
        pairs = [*headers, ("cache-control", "no-store"), (REQUEST_ID, self._call.request_id)]
        if self.timing:
            pairs.append(("server-timing", self.timing))
        encoded = [(name.encode(), value.encode()) for name, value in pairs]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def _body(self, data: bytes, *, more: bool) -> None:
        sizes = self._call.sizes
        sizes["response_bytes"] = sizes.get("response_bytes", 0) + len(data)
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
