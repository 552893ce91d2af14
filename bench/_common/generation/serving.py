"""The service as a process of its own, over a small collection."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from indexers.demo_corpus import DEMO_FIELDS, demo_documents
from retrieval.cli.child import child_server
from retrieval.cli.index_job import IndexJob
from retrieval.cli.index_local import index_local
from retrieval.server.endpoint_file import NAME as ENDPOINT_FILE
from retrieval.settings.load import PREFIX, load_settings

COLLECTION, _TENANT = "python", "default"
_DOCUMENTS = 60


@dataclass(frozen=True, slots=True)
class Service:
    """A server that runs."""

    address: str
    pid: int


@asynccontextmanager
async def served(folder: Path, name: str, settings: str) -> AsyncIterator[Service]:
    """Serves the collection of a filled folder while the body runs; the settings, as TOML, are kept under a name."""
    config, data = folder / f"{name}.toml", folder / "data"
    config.write_text(settings, encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    async with child_server(config, data, environ) as address:
        yield Service(address, int(json.loads((data / ENDPOINT_FILE).read_text(encoding="utf-8"))["pid"]))


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
