"""Sends the system prompt to the backends that ask for it, so that it is cached when the first question comes.

An embedded model always gets it: that loads the model too.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import structlog

from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.service import BackendService
from retrieval.errors import BackendError
from retrieval.server.beside import beside
from retrieval.speech import GenerationParams
from retrieval.types import NO_CONTEXT, Arrangement, Prompt

_log = structlog.get_logger("headrace")


@asynccontextmanager
async def warming(services: Mapping[str, BackendService], instructions: str) -> AsyncIterator[None]:
    """Warms up beside the body, one server of each backend after the other; nobody waits for it."""
    wanted = [each for each in services.values() if each.settings.warm_up or each.settings.kind == "llama"]
    async with AsyncExitStack() as stack:
        for service in wanted:
            await stack.enter_async_context(beside(_warm(service, instructions)))
        yield


async def _warm(service: BackendService, instructions: str) -> None:
    for endpoint in service.endpoints:
        try:
            await _send(endpoint, service.settings.first_token_timeout_s, instructions)
        except BackendError as error:
            _log.warning("backend_not_warm", backend=service.settings.name, error=type(error).__name__)
        else:
            _log.info("backend_warm", backend=service.settings.name, server=endpoint.server)


async def _send(endpoint: Endpoint, patience_s: float, instructions: str) -> None:
    prompt = Prompt(instructions, NO_CONTEXT, "Say yes.", Arrangement.by_relevance(NO_CONTEXT))
    params = GenerationParams(1, 0.0, time.monotonic_ns() + int(patience_s * 1e9))
    async with aclosing(endpoint.backend.stream(prompt, params)) as pieces:
        async for _ in pieces:
            pass
