"""Sends the system prompt to the backends that ask for it, so that it is cached when the first question comes.

An embedded model always gets it: that loads the model too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress

import structlog

from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.service import BackendService
from retrieval.errors import BackendError
from retrieval.speech import GenerationParams
from retrieval.types import Arrangement, Context, Prompt

_NOTHING = Context("", 0, 0, "")
_log = structlog.get_logger("headrace")


@asynccontextmanager
async def warming(services: Mapping[str, BackendService], instructions: str) -> AsyncIterator[None]:
    """Warms up beside the body, one server of each backend after the other; nobody waits for it."""
    wanted = [each for each in services.values() if each.settings.warm_up or each.settings.kind == "llama"]
    tasks = [asyncio.create_task(_warm(service, instructions)) for service in wanted]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _warm(service: BackendService, instructions: str) -> None:
    for endpoint in service.endpoints:
        try:
            await _send(endpoint, service.settings.first_token_timeout_s, instructions)
        except BackendError as error:
            _log.warning("backend_not_warm", backend=service.settings.name, error=type(error).__name__)
        else:
            _log.info("backend_warm", backend=service.settings.name, server=endpoint.server)


async def _send(endpoint: Endpoint, patience_s: float, instructions: str) -> None:
    prompt = Prompt(instructions, _NOTHING, "Say yes.", Arrangement.by_relevance(_NOTHING))
    params = GenerationParams(1, 0.0, time.monotonic_ns() + int(patience_s * 1e9))
    async with aclosing(endpoint.backend.stream(prompt, params)) as pieces:
        async for _ in pieces:
            pass
