"""The servers whose hits are timed: one process for each way to set the caches, all over copies of one collection."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._common.beir import BeirSet
from bench._common.engines import open_encoders
from bench._common.pipelines import index_documents, open_catalog
from bench._common.redis_server import RedisServer
from retrieval.cli.child import child_server
from retrieval.settings import Settings

TRUST_MS = 60_000


@dataclass(frozen=True, slots=True)
class Serving:
    """One way to serve: its settings, and what the reply must say for the call to count."""

    toml: str
    tier: str
    trusted: bool = False


def servings(redis_url: str) -> Mapping[str, Serving]:
    """Returns the ways, by name."""
    shared = f'[cache.answers]\nmemory_bytes = 0\n[cache.redis]\nurl = "{redis_url}"\nbudget_ms = 200.0\n'
    return {
        "evidence": Serving("[cache]\nresults_bytes = 0\n", "memory"),
        "result": Serving("", "memory"),
        "trusted": Serving(f"[cache.answers]\ntrust_ms = {TRUST_MS}\n", "memory", trusted=True),
        "shared": Serving(shared, "shared"),
    }


@asynccontextmanager
async def serving(
    folder: Path, source: BeirSet, settings: Settings, encodings: Path
) -> AsyncIterator[Mapping[str, tuple[str, Serving]]]:
    """Indexes the documents once, and serves them in every way; gives the addresses by name."""
    await _fill(folder / "filled", source, settings, encodings)
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(RedisServer())
        addresses = {}
        for name, way in servings(redis.url).items():
            data, config = folder / name, folder / f"{name}.toml"
            shutil.copytree(folder / "filled", data)
            config.write_text(way.toml, encoding="utf-8")
            addresses[name] = (await stack.enter_async_context(child_server(config, data, os.environ)), way)
        yield addresses


async def _fill(folder: Path, source: BeirSet, settings: Settings, encodings: Path) -> None:
    async with open_encoders(settings, encodings) as encoders:
        catalog = open_catalog(settings, encoders.cached, folder)
        try:
            await index_documents(catalog, source.documents, {}, encoders, encoders.cached)
        finally:
            await catalog.close()
