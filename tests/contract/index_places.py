"""Where the contract of an Index is held: each place opens a catalog, and can settle writes into its served files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from indexers.catalog import EmbeddedCatalog
from indexers.index import Catalog, Index
from indexers.options import DenseModel, IndexOptions, ShardKind
from tests.fakes.encoded import DIM

MODEL = DenseModel("tests/words", "1", DIM)


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
        catalog = EmbeddedCatalog(root, MODEL, IndexOptions(kind=kind, build_automatically=False))
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
