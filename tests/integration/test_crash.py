"""A process is killed at any moment: what was acknowledged is there afterwards, and nothing is there by half."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from indexers.catalog import EmbeddedCatalog
from indexers.errors import CollectionNotFound
from indexers.index import Index
from indexers.models import OneModel
from indexers.options import IndexOptions
from indexers.types import CollectionKey, Counts
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid, token_vectors

KEY = CollectionKey("tenant", "docs")
DOCUMENTS = 40
CHUNKS = 5

_WRITER = """
import asyncio, sys
from pathlib import Path
from tests.integration.test_crash import write_all
asyncio.run(write_all(Path(sys.argv[1])))
"""


async def write_all(root: Path) -> None:
    """Writes documents one call each, building now and then, and says each one that was acknowledged."""
    catalog = EmbeddedCatalog(root, OneModel(MODEL), IndexOptions(build_after_chunks=60))
    try:
        index = await catalog.open(KEY)
    except CollectionNotFound:
        index = await catalog.create(KEY, {}, "")
    await _write(index, acknowledge=True)
    await catalog.close()


async def _write(index: Index, *, acknowledge: bool) -> None:
    for number in range(DOCUMENTS):
        await index.upsert([encoded(f"d{number}", [f"alpha n{number} part{part}" for part in range(CHUNKS)])])
        if acknowledge:
            sys.stdout.write(f"d{number}\n")
            sys.stdout.flush()


@pytest.mark.parametrize("kill_after", [0, 3, 11, 20, 33])
def test_killed_writer_loses_nothing_acknowledged(tmp_path: Path, kill_after: int) -> None:
    """After SIGKILL at any moment the folder opens, holds whole documents, and a second run completes it (VEC-15)."""
    root = tmp_path / "data"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(root)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    with writer:
        assert writer.stdout is not None
        acknowledged = {writer.stdout.readline().strip() for _ in range(kill_after)}
        writer.send_signal(signal.SIGKILL)
        acknowledged |= set(writer.stdout.read().split())
    asyncio.run(_recovered(root, acknowledged))


async def _recovered(root: Path, acknowledged: set[str]) -> None:
    catalog = EmbeddedCatalog(root, OneModel(MODEL), IndexOptions(build_automatically=False))
    try:
        index = await catalog.open(KEY)
    except CollectionNotFound:
        assert not acknowledged
        index = await catalog.create(KEY, {}, "")
    counts = await index.count(None)
    assert counts.chunks == counts.documents * CHUNKS
    found = await found_documents(index, hybrid(index, "alpha", 1_000))
    assert acknowledged <= found
    assert len(found) == counts.documents <= len(acknowledged) + 1
    await _write(index, acknowledge=False)
    assert await index.count(None) == Counts(DOCUMENTS, DOCUMENTS * CHUNKS)
    passages = await index.fetch((await index.search(hybrid(index, "alpha", 1_000), None)).chunk_ids)
    assert len(passages) == DOCUMENTS * CHUNKS
    assert np.isfinite(await index.late_scores(token_vectors("alpha"), passages)).all()
    await catalog.close()
