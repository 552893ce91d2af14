"""A gRPC server that answers from a script by itself, so that what gRPC and the machine cost can be told from ours.

    python -m bench._common.generate.echo --token-ms 100 --stamped 1

Prints its address, and serves until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import grpc.aio

from bench._common.generation.script import Script
from bench._common.generation.serving import Service
from bench._common.loops import run
from headrace.v1 import retrieval_pb2 as wire
from headrace.v1 import retrieval_pb2_grpc

_PATIENCE_S = 20.0
_PROMPT_TOKENS = 400


class Echo(retrieval_pb2_grpc.RetrievalServiceServicer):
    """Answers what the service would be asked."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._draw = random.Random(script.seed)

    async def Retrieve(  # noqa: N802 - the name of the call
        self, request: wire.RetrieveRequest, context: grpc.aio.ServicerContext[wire.RetrieveRequest, object]
    ) -> wire.RetrieveResponse:
        """Finds nothing."""
        return wire.RetrieveResponse()

    async def Generate(  # noqa: N802 - the name of the call
        self, request: wire.GenerateRequest, context: grpc.aio.ServicerContext[wire.GenerateRequest, object]
    ) -> AsyncIterator[wire.GenerateResponse]:
        """Streams the script's tokens, with its stamps."""
        came_ns, script, loop = time.monotonic_ns(), self._script, asyncio.get_running_loop()
        length = script.length(self._draw, request.max_output_tokens)
        yield wire.GenerateResponse(retrieved=wire.RetrieveResponse())
        await asyncio.sleep(script.first_token_s(self._draw, _PROMPT_TOKENS))
        began_s = loop.time()
        for number in range(length):
            await asyncio.sleep(max(0.0, began_s + number * script.token_ms / 1e3 - loop.time()))
            text = script.word(number, length - 1, came_ns)
            yield wire.GenerateResponse(delta=wire.Delta(text=text))
        yield wire.GenerateResponse(completed=wire.Completed())


@contextmanager
def echo_server(script: Script) -> Iterator[Service]:
    """Runs a server in a process of its own while the body does."""
    command = [sys.executable, "-m", "bench._common.generate.echo", *script.arguments()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield Service(child.stdout.readline().strip(), child.pid)
        finally:
            child.terminate()
            child.wait(_PATIENCE_S)


async def _serve(script: Script) -> None:
    server = grpc.aio.server()
    retrieval_pb2_grpc.add_RetrievalServiceServicer_to_server(Echo(script), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


def main() -> None:
    """Runs the tool."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    Script.add_options(made)
    with contextlib.suppress(KeyboardInterrupt):
        run(_serve(Script.of(made.parse_args())))


if __name__ == "__main__":
    main()
