"""Opens each place of the Index contract."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from indexers.index import Catalog
from tests.contract.index_places import EMBEDDED, Place, qdrant_fake, qdrant_server

_URL = os.environ.get("QDRANT_URL", "")
_PLACES = [
    *(pytest.param(place, id=place.name) for place in [*EMBEDDED, qdrant_fake()]),
    *([pytest.param(qdrant_server(_URL), id="qdrant-server", marks=pytest.mark.qdrant_server)] if _URL else []),
]


@pytest.fixture(params=_PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """Gives each implementation in turn."""
    chosen: Place = request.param
    return chosen


@pytest.fixture
async def catalog(place: Place, tmp_path: Path) -> AsyncIterator[Catalog]:
    """Opens an empty catalog."""
    async with place.open(tmp_path / "data") as opened:
        yield opened
