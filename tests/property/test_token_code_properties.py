"""Token codes follow their chunk through whatever is done to a collection."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from indexers.catalog import EmbeddedCatalog
from indexers.index import Index
from indexers.late import scores_of
from indexers.models import OneModel
from indexers.options import IndexOptions, ShardKind
from indexers.types import CollectionKey
from tests.contract.index_places import MODEL
from tests.fakes.encoded import CODEC, encoded, hybrid, token_vectors

KEY = CollectionKey("t", "c")
_WORDS = ["alpha", "beta", "gamma", "delta", "omega"]
_TEXT = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join)
_STEP = st.one_of(
    st.tuples(st.just("upsert"), st.integers(0, 5), st.lists(_TEXT, max_size=3), st.booleans()),
    st.tuples(st.just("upsert"), st.integers(0, 5), st.lists(_TEXT, max_size=3), st.booleans()),
    st.tuples(st.just("delete"), st.integers(0, 5)),
    st.tuples(st.just("reopen")),
)
_BUILD = ("build",)
_WITHOUT = [("upsert", 0, ["alpha beta", "gamma"], False), ("upsert", 1, ["beta"], True)]
_REPLACED = [("upsert", 1, ["alpha"], True), ("upsert", 2, ["omega"], True), ("delete", 0), ("reopen",)]


@pytest.mark.parametrize("kind", ShardKind)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_STEP, min_size=1, max_size=8), st.lists(_STEP, max_size=8))
@example(_WITHOUT, _REPLACED)
def test_token_codes_follow_their_chunk(kind: ShardKind, before: list[tuple], after: list[tuple]) -> None:  # type: ignore[type-arg]
    """After any writes, a build and reopenings, each live chunk scores as its own codes do, and no other chunk does."""
    asyncio.run(_run(kind, [*before, _BUILD, *after]))


async def _run(kind: ShardKind, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder:
        options = IndexOptions(kind=kind, build_automatically=False)
        catalog = EmbeddedCatalog(Path(folder), OneModel(MODEL), options)
        index = await catalog.create(KEY, {}, "")
        stored: dict[str, bool] = {}  # document id -> whether its chunks came with codes
        for step, *rest in steps:
            if step == "reopen":
                await catalog.close()
                catalog = EmbeddedCatalog(Path(folder), OneModel(MODEL), options)
                index = await catalog.open(KEY)
            elif step == "build":
                await index.build()
            else:
                await _write(index, step, rest, stored)
            await _check(index, stored)
        await catalog.close()


async def _write(index: Index, step: str, rest: list, stored: dict[str, bool]) -> None:  # type: ignore[type-arg]
    name = f"d{rest[0]}"
    if step == "delete":
        stored.pop(name, None)
        await index.delete([name])
        return
    stored[name] = rest[2]
    await index.upsert([encoded(name, rest[1], codec=CODEC if rest[2] else None)])


async def _check(index: Index, stored: dict[str, bool]) -> None:
    query = token_vectors("alpha omega") / np.float32(2)
    passages = await index.fetch((await index.search(hybrid(index, "alpha", 100), None)).chunk_ids)
    assert len(passages) == (await index.count(None)).chunks
    fresh = [CODEC.encode(token_vectors(one.text)).ravel() if stored[one.document_id] else None for one in passages]
    expected = scores_of(query, fresh, CODEC)
    np.testing.assert_allclose(await index.late_scores(query, passages), expected, atol=1e-6)
