"""A server process over a small collection, with a scripted model server behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench._common.generation.processes import scripted_server
from bench._common.generation.script import Script
from bench._common.generation.serving import served

_UNLIMITED = 100_000

ARMS = ("adaptive", "unlimited")
"""With its limit and its queue, and with every request sent on at once."""


@asynccontextmanager
async def serving(folder: Path, arm: str, script: Script, deadline_s: float) -> AsyncIterator[tuple[str, str]]:
    """Runs both processes while the body does; gives the addresses of the service and of the model server."""
    with scripted_server(script) as model:
        async with served(folder, arm, settings_text(arm, model, deadline_s)) as service:
            yield service.address, model


def settings_text(arm: str, model: str, deadline_s: float) -> str:
    """Returns the settings of an arm as TOML."""
    bounds = f"max_concurrent = {_UNLIMITED}\nmax_queued = {_UNLIMITED}\n" if arm == "unlimited" else ""
    queue = f"initial_concurrent = {_UNLIMITED}\nlatency_tolerance = 100.0\n" if arm == "unlimited" else ""
    return f"""
[server]
port = 0

[context]
budget_tokens = 512

[retrieval]
candidates = 20

[generation]
default_backend = "scripted"
timeout_ms = {int(deadline_s * 1e3)}

[[generation.backends]]
name = "scripted"
kind = "openai"
base_url = "{model}/v1"
model = "scripted"
retries = 0
first_token_timeout_s = {deadline_s}
{bounds}
[generation.queue]
{queue}"""
