"""What lets requests in."""

from __future__ import annotations

from typing import Any

import pytest

from indexers.errors import CollectionNotFound
from indexers.types import CollectionKey
from retrieval.admission import Admission
from retrieval.clock import StageClock
from retrieval.collection_encoders import OneEncoder
from retrieval.deadline import Deadline
from retrieval.scope import ModelRevisions
from retrieval.settings.load import load_settings
from retrieval.stages.admit import Gate
from retrieval.thresholds import Overrides, resolve
from retrieval.trace import Trace
from retrieval.types import RetrieveRequest
from tests.fakes.encoders import HashEncoder


class _Empty:
    """A catalog without collections."""

    async def open(self, key: CollectionKey) -> Any:
        raise CollectionNotFound(key.collection)


async def test_bulk_work_is_told_of_each_request() -> None:
    """Also of one whose vectors are known, or that finds nothing: it does not reach the encoder's queue."""
    told: list[bool] = []
    catalog: Any = _Empty()
    gate = Gate(Admission(1, 1, 1_000), catalog, OneEncoder(HashEncoder()), ModelRevisions(), lambda: told.append(True))
    thresholds = resolve(load_settings(None, {}, {}).settings, Overrides())
    request = RetrieveRequest("r", "acme", "docs", "which pump", None, thresholds)
    for count in (1, 2):
        with pytest.raises(CollectionNotFound):
            async with gate.admitted(request, Trace(StageClock()), Deadline.after(5.0)):
                pass
        assert len(told) == count
