"""An OpenAI-compatible server that plays a script: exact delays, exact counts, no model.

    python -m bench._common.generation.scripted_server --slots 64 --token-ms 20

Prints its address, and serves until it is killed. `POST /v1/chat/completions` streams or not, `GET /v1/models` lists
one model, `GET /stats` tells the counts. It works as an engine with continuous batching does: so many requests at once,
the others wait inside in the order in which they came. It reads HTTP by itself, so that it costs next to nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, SupportsIndex

from bench._common.generation.prefix_blocks import PrefixBlocks
from bench._common.generation.script import STAMP_DIGITS, Counts, Script
from bench._common.generation.stream_bytes import AnswerBytes, reply
from bench._common.loops import run

MODEL = "scripted"

_BLANK = 8 * 10 ** (STAMP_DIGITS - 1)  # where a stamp will be; no clock says that


class ScriptedServer:
    """Plays one script. For one event loop."""

    def __init__(self, script: Script) -> None:
        self.counts = Counts()
        self._script = script
        self._slots = asyncio.Semaphore(script.slots)
        self._draw = random.Random(script.seed)
        self._cache = PrefixBlocks(script.cached)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of one connection, one after another, until its client leaves."""
        early = b""
        self.counts.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = early + await reader.readuntil(b"\r\n\r\n")
                early = await self._answer_while_there(head, await reader.readexactly(_length(head)), reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.counts.connections -= 1

    async def _answer_while_there(
        self, head: bytes, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        """Returns what has been read of the next request."""
        if not head.startswith(b"POST"):
            writer.write(self._listing(head))
            return b""
        came_ns = reader.fed_ns if isinstance(reader, _Reader) else time.monotonic_ns()
        answering = asyncio.create_task(self._answer(json.loads(body), writer, came_ns))
        reading = asyncio.create_task(reader.read(1))
        await asyncio.wait({answering, reading}, return_when=asyncio.FIRST_COMPLETED)
        left = reading.done() and (reading.exception() is not None or not reading.result())
        if left:
            answering.cancel()
        await asyncio.wait({answering})
        reading.cancel()
        await asyncio.wait({reading})
        if answering.cancelled() or answering.exception() is not None:
            raise ConnectionResetError from None if answering.cancelled() else answering.exception()
        return b"" if reading.cancelled() else reading.result()

    def _listing(self, head: bytes) -> bytes:
        if head.startswith(b"GET /stats"):
            self.counts.cpu_s = time.process_time()
            return reply(200, asdict(self.counts))
        return reply(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def _answer(self, request: dict[str, Any], writer: asyncio.StreamWriter, came_ns: int) -> None:
        counts, script = self.counts, self._script
        counts.requests += 1
        if script.refuse_beyond and counts.inside >= script.refuse_beyond:
            counts.refused += 1
            writer.write(reply(429, {"error": {"message": "too many requests"}}, "Retry-After: 1\r\n"))
            return
        if self._draw.random() < script.fail_share:
            counts.failed += 1
            writer.write(reply(500, {"error": {"message": "scripted failure"}}))
            return
        counts.inside += 1
        counts.most_inside = max(counts.most_inside, counts.inside)
        try:
            async with self._slots:
                began_s = time.monotonic()
                await self._generate(request, writer, came_ns)
                counts.held_s += time.monotonic() - began_s
        except (asyncio.CancelledError, ConnectionError):
            counts.left += 1
            raise
        finally:
            counts.inside -= 1
        counts.answered += 1

    async def _generate(self, request: dict[str, Any], writer: asyncio.StreamWriter, came_ns: int) -> None:
        counts, script = self.counts, self._script
        words = [word for message in request["messages"] for word in str(message["content"]).split()]
        cached = self._cache.read(words)
        counts.prompt_tokens += len(words)
        counts.cached_tokens += cached
        await asyncio.sleep(script.first_token_s(self._draw, len(words) - cached))
        length = script.length(self._draw, request.get("max_completion_tokens") or request.get("max_tokens") or 0)
        answer = AnswerBytes(MODEL, length, len(words), cached)
        if not request.get("stream"):
            await asyncio.sleep(script.token_ms * length / 1e3)
            counts.tokens += length
            writer.write(answer.whole("".join(script.word(number, length - 1, 0, 0) for number in range(length))))
            return
        await self._stream(answer, writer, came_ns)

    async def _stream(self, answer: AnswerBytes, writer: asyncio.StreamWriter, came_ns: int) -> None:
        loop = asyncio.get_running_loop()
        began_s, token_s = loop.time(), self._script.token_ms / 1e3
        for number in range(answer.length):
            if number:
                await asyncio.sleep(max(0.0, began_s + number * token_s - loop.time()))
            piece = answer.piece(number, self._script.word(number, answer.length - 1, came_ns, _BLANK))
            # The stamp comes last, so that making the piece is the model's time.
            writer.write(piece.replace(b"%d" % _BLANK, b"%0*d" % (STAMP_DIGITS, time.monotonic_ns())))
            self.counts.tokens += 1
            await writer.drain()
        writer.write(answer.end())


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


class _Reader(asyncio.StreamReader):
    """Knows when its last bytes came, however late they are looked at."""

    fed_ns = 0

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        self.fed_ns = time.monotonic_ns()
        super().feed_data(data)


async def _run(script: Script, port: int) -> None:
    serve, loop = ScriptedServer(script).serve, asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: asyncio.StreamReaderProtocol(_Reader(), serve), "127.0.0.1", port, backlog=4096
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Runs the tool."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    made.add_argument("--port", type=int, default=0, help="0 takes a free one")
    Script.add_options(made)
    arguments = made.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        run(_run(Script.of(arguments), arguments.port))


if __name__ == "__main__":
    main()
