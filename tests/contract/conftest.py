"""Opens each place of the Index contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from indexers.index import Catalog
from tests.contract.index_places import EMBEDDED, Place


@pytest.fixture(params=EMBEDDED, ids=lambda place: place.name)
def place(request: pytest.FixtureRequest) -> Place:
    """Gives each implementation in turn."""
    chosen: Place = request.param
    return chosen


@pytest.fixture
async def catalog(place: Place, tmp_path: Path) -> AsyncIterator[Catalog]:
    """Opens an empty catalog."""
    async with place.open(tmp_path / "data") as opened:
        yield opened
