"""The real child program on a stand-in for llama.cpp, and backends on it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from retrieval.generation.llama_backend import LlamaBackend
from retrieval.generation.llama_launch import Launch
from retrieval.settings.generation import BackendSettings
from tests.fakes.counters import WordCounter

ROOT = Path(__file__).parents[2]
LIBRARY = Path(__file__).with_name("llama_library")
# Through `env`, which becomes the program itself: the path is set for this child alone.
COMMAND = (
    "env",
    f"PYTHONPATH={LIBRARY}{os.pathsep}{ROOT}{os.pathsep}{ROOT / 'proto'}",
    sys.executable,
    "-m",
    "retrieval.generation.llama_server",
)


def launch(folder: Path, behaviour: str = "answer") -> Launch:
    """Returns how to serve weights that behave so."""
    weights = folder / "weights"
    weights.write_text(behaviour, encoding="utf-8")
    return Launch(str(weights), "tiny", "", slots=2, slot_tokens=512, threads=1, cache_mib=1, niceness=3)


@asynccontextmanager
async def llama(folder: Path, behaviour: str = "answer", **changes: Any) -> AsyncIterator[LlamaBackend]:
    """Opens a backend on it, and closes it."""
    settings = BackendSettings.model_validate({"name": "small", "kind": "llama", "model": "tiny"} | changes)
    opened = LlamaBackend(settings, launch(folder, behaviour), WordCounter(), COMMAND)
    try:
        yield opened
    finally:
        await opened.close()
