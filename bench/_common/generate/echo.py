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
from typing import Any, TypeAlias

import grpc.aio

from bench._common.generation.script import Script
from bench._common.generation.serving import Service
from bench._common.loops import run
from headrace.v1 import retrieval_pb2 as wire

_PATIENCE_S = 20.0
_PROMPT_TOKENS = 400
_SERVICE = "headrace.v1.RetrievalService"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Echo:
    """Answers what the service would be asked."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._draw = random.Random(script.seed)

    async def retrieve(self, request: wire.RetrieveRequest, context: _Context) -> wire.RetrieveResponse:
        """Finds nothing."""
        return wire.RetrieveResponse()

    async def generate(self, request: wire.GenerateRequest, context: _Context) -> AsyncIterator[wire.GenerateResponse]:
        """Streams the script's tokens, with its stamps."""
        came_ns, script, loop = time.monotonic_ns(), self._script, asyncio.get_running_loop()
        length = script.length(self._draw, request.max_output_tokens)
        yield wire.GenerateResponse(retrieved=wire.RetrieveResponse())
        await asyncio.sleep(script.first_token_s(self._draw, _PROMPT_TOKENS))
        began_s = loop.time()
        for number in range(length):
            await asyncio.sleep(max(0.0, began_s + number * script.token_ms / 1e3 - loop.time()))
            text = script.word(number, length - 1, came_ns, time.monotonic_ns())
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
    server.add_generic_rpc_handlers([_calls(Echo(script))])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


def _calls(echo: Echo) -> grpc.GenericRpcHandler:
    retrieve = grpc.unary_unary_rpc_method_handler(
        echo.retrieve,
        request_deserializer=wire.RetrieveRequest.FromString,
        response_serializer=wire.RetrieveResponse.SerializeToString,
    )
    generate = grpc.unary_stream_rpc_method_handler(
        echo.generate,
        request_deserializer=wire.GenerateRequest.FromString,
        response_serializer=wire.GenerateResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(_SERVICE, {"Retrieve": retrieve, "Generate": generate})


def main() -> None:
    """Runs the tool."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    Script.add_options(made)
    with contextlib.suppress(KeyboardInterrupt):
        run(_serve(Script.of(made.parse_args())))


if __name__ == "__main__":
    main()
