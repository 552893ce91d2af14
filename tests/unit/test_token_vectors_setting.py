"""Whether a collection stores token vectors is said once, when it is created, and shown ever after."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.v1 import index_pb2
from indexers.catalog import EmbeddedCatalog
from indexers.models import OneModel
from indexers.options import IndexOptions
from indexers.sources.access import SourceAccess
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.jobs.service import JobDesk
from retrieval.scope import Identity
from retrieval.server.calls import Call, enter_call
from retrieval.server.services.index import IndexService
from tests.contract.index_places import MODEL
from tests.fakes.encoded import CODEC
from tests.fakes.job_store import MemoryJobStore

_CONTEXT: Any = None
_OPTIONS = IndexOptions(build_automatically=False)


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[EmbeddedCatalog]:
    """Is an empty catalog of a model with token vectors."""
    opened = EmbeddedCatalog(tmp_path, OneModel(MODEL), _OPTIONS)
    yield opened
    await opened.close()


async def _create(catalog: EmbeddedCatalog, name: str, **given: bool) -> index_pb2.Collection:
    caller = Identity("acme", frozenset({"write"}), "app")
    enter_call(Call("CreateCollection", "r", StageClock(), Deadline.after(60), caller))

    async def nothing_is_cached(_: object) -> None:
        pass

    async def nothing_is_deleted(_: object) -> int:
        return 0

    def nothing_is_indexed(_: object) -> Any:
        raise AssertionError

    nothing_moves: Any = None
    desk = JobDesk(MemoryJobStore(), SourceAccess(), nothing_is_deleted)
    service = IndexService(catalog, nothing_is_indexed, nothing_is_cached, desk, nothing_moves)
    reply = await service.CreateCollection(index_pb2.CreateCollectionRequest(name=name, **given), _CONTEXT)
    return reply.collection


async def test_a_collection_stores_token_vectors_unless_told_not_to(catalog: EmbeddedCatalog) -> None:
    """Absent means yes, and the reply says which it is and how many bytes a token takes."""
    by_default, asked = await _create(catalog, "a"), await _create(catalog, "b", token_vectors=True)
    assert [one.token_code_bytes for one in (by_default, asked)] == [CODEC.code_bytes] * 2
    assert by_default.token_vectors
    assert asked.token_vectors
    without = await _create(catalog, "c", token_vectors=False)
    assert (without.token_vectors, without.token_code_bytes) == (False, 0)


async def test_a_model_without_token_vectors_stores_none(tmp_path: Path) -> None:
    """Asking for them is no error; there is nothing to store."""
    catalog = EmbeddedCatalog(tmp_path, OneModel(replace(MODEL, codec=None)), _OPTIONS)
    collection = await _create(catalog, "a", token_vectors=True)
    assert (collection.token_vectors, collection.token_code_bytes) == (False, 0)
    await catalog.close()
