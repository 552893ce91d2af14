"""A bare gRPC server that streams back what was recorded for a request: the same messages, and nothing done for them.

What it costs to carry those bytes is what no server of ours can save. It is the same kind of server: `grpc.aio` on
uvloop with the same options, in a process of its own with the interpreter tuned alike; bytes are neither parsed nor
built.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio

from bench._common.loops import run
from retrieval.server.listening import channel_options
from retrieval.settings.service import ServerSettings

RECORD = "/bench.Echo/Record"
REPLAY = "/bench.Echo/Replay"


class Echo(grpc.GenericRpcHandler):
    """Serves what was recorded."""

    def __init__(self) -> None:
        self._recorded: dict[bytes, Sequence[bytes]] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Returns the handler of a method; an unknown one stays unknown."""
        handlers: Mapping[str, Any] = {
            RECORD: grpc.stream_unary_rpc_method_handler(self._record),
            REPLAY: grpc.unary_stream_rpc_method_handler(self._replay),
        }
        return handlers.get(handler_call_details.method)

    async def _record(self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        """Takes a request, then the messages that it is answered with."""
        request, *messages = [part async for part in requests]
        self._recorded[request] = messages
        return b""

    async def _replay(self, request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        for message in self._recorded[request]:
            await context.write(message)


@contextmanager
def echo_server() -> Iterator[str]:
    """Serves in a child process while the body runs, and gives the address."""
    command = [sys.executable, "-m", "bench._common.cache.echo"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()  # tells it to end


async def _serve() -> None:
    server = grpc.aio.server(options=channel_options(ServerSettings()))
    server.add_generic_rpc_handlers((Echo(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)  # the parent reads it
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    run(_serve())
