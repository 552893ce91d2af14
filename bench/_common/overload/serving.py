"""A server process over a small collection, with a scripted model server behind it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

from bench._common.generation.processes import scripted_server
from bench._common.generation.script import Script
from indexers.demo_corpus import DEMO_FIELDS, demo_documents
from retrieval.cli.child import child_server
from retrieval.cli.index_job import IndexJob
from retrieval.cli.index_local import index_local
from retrieval.settings.load import PREFIX, load_settings

COLLECTION, _TENANT = "python", "default"
_DOCUMENTS = 60
_UNLIMITED = 100_000

ARMS = ("adaptive", "unlimited")
"""With its limit and its queue, and with every request sent on at once."""


@asynccontextmanager
async def serving(folder: Path, arm: str, script: Script, deadline_s: float) -> AsyncIterator[tuple[str, str]]:
    """Runs both processes while the body does; gives the addresses of the service and of the model server."""
    with scripted_server(script) as model:
        config = folder / f"{arm}.toml"
        config.write_text(settings_text(arm, model, deadline_s), encoding="utf-8")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        async with child_server(config, folder / "data", environ) as address:
            yield address, model


async def fill(folder: Path) -> None:
    """Indexes a few documents, unless an earlier run has."""
    data = folder / "data"
    if data.exists():
        return
    data.mkdir(parents=True)
    settings = load_settings(None, {}, {"data.folder": str(data)}).settings
    fields = {name: kind.value for name, kind in DEMO_FIELDS.items()}
    documents = list(islice(demo_documents(), _DOCUMENTS))
    await index_local(settings, _TENANT, IndexJob(COLLECTION, fields, documents, ()), None)


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
