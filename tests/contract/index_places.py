"""Where the contract of an Index is held: each place opens a catalog, and can settle writes into its served files."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from indexers.catalog import EmbeddedCatalog
from indexers.index import Catalog, Index
from indexers.models import OneModel
from indexers.options import DenseModel, IndexOptions, ShardKind
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from tests.fakes.encoded import CODEC, DIM
from tests.fakes.qdrant_servicer import FakeQdrant, serving

MODEL = DenseModel("tests/words", "1", DIM, CODEC)


@dataclass(frozen=True, slots=True)
class Place:
    """An implementation under test."""

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[Catalog]]
    builds: bool  # whether `settle` makes a generation

    async def settle(self, index: Index) -> None:
        """Folds writes into a generation, where the place is about that."""
        if self.builds:
            await index.build()


def embedded(name: str, kind: ShardKind, *, builds: bool) -> Place:
    """Returns a place with an embedded catalog."""

    @asynccontextmanager
    async def opened(root: Path) -> AsyncIterator[Catalog]:
        catalog = EmbeddedCatalog(root, OneModel(MODEL), IndexOptions(kind=kind, build_automatically=False))
        try:
            yield catalog
        finally:
            await catalog.close()

    return Place(name, opened, builds)


EMBEDDED = [
    embedded("exact", ShardKind.EXACT, builds=False),
    embedded("edge", ShardKind.EDGE, builds=False),
    embedded("edge-built", ShardKind.EDGE, builds=True),
]


def qdrant_fake() -> Place:
    """Returns a place with a loopback server that is not Qdrant's engine; its state lives as long as the folder."""
    states: dict[Path, FakeQdrant] = {}

    @asynccontextmanager
    async def opened(root: Path) -> AsyncIterator[Catalog]:
        async with serving(states.setdefault(root, FakeQdrant())) as port:
            catalog = QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), OneModel(MODEL))
            try:
                yield catalog
            finally:
                await catalog.close()

    return Place("qdrant-fake", opened, builds=True)


def qdrant_server(url: str) -> Place:
    """Returns a place on a real server; everything is stored under a prefix of its own, made of the folder."""

    @asynccontextmanager
    async def opened(root: Path) -> AsyncIterator[Catalog]:
        parts = urlsplit(url)
        prefix = f"headrace-test-{zlib.crc32(str(root).encode())}"
        options = QdrantOptions(
            parts.hostname or "",
            parts.port or 6334,
            tls=parts.scheme == "https",
            prefix=prefix,
            build_automatically=False,
        )
        catalog = QdrantCatalog(options, OneModel(MODEL))
        try:
            yield catalog
        finally:
            await catalog.close()

    return Place("qdrant-server", opened, builds=True)
