"""The encoders of collections: opened when they are needed, once, and never for vectors of another model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from encoders.errors import ModelNotFound
from encoders.open import ScheduledDenseEncoder, open_dense
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from indexers.errors import ModelMismatch
from indexers.types import CollectionDefinition, CollectionKey
from retrieval.server.encoder_pool import EncoderPool
from tests.fakes.tiny_models import make_tiny_bi_encoder


class Opening:
    """Opens tiny models by their folders, and counts."""

    def __init__(self, scheduler: TokenScheduler) -> None:
        self._scheduler = scheduler
        self.opened: list[str] = []

    def __call__(self, source: str) -> ScheduledDenseEncoder:
        """Opens one."""
        self.opened.append(source)
        return open_dense(ModelSource(source), self._scheduler)


@pytest.fixture
def opening() -> Iterator[Opening]:
    """Is what opens models."""
    scheduler = TokenScheduler(1, 64)
    try:
        yield Opening(scheduler)
    finally:
        scheduler.stop(1.0)


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Are two models."""
    return [str(make_tiny_bi_encoder(tmp_path / name, dim=dim, seed=dim)) for name, dim in (("a", 16), ("b", 24))]


def definition_of(encoder: ScheduledDenseEncoder, source: str = "") -> CollectionDefinition:
    """Returns a collection of an encoder's vectors."""
    key, at = CollectionKey("acme", "docs"), datetime(2026, 12, 1, tzinfo=UTC)
    return CollectionDefinition(key, {}, "", encoder.model_id, encoder.revision, encoder.dim, at, dense_source=source)


async def test_models_of_collections_are_opened_once(opening: Opening, folders: list[str]) -> None:
    """All who ask at once share one opening; afterwards the encoder is there without asking."""
    configured, other = opening(folders[0]), opening(folders[1])
    pool = EncoderPool(configured, None, opening)
    definition = definition_of(other, folders[1])
    opening.opened.clear()
    models = await asyncio.gather(*(pool.model_of(definition) for _ in range(5)))
    assert {model.dim for model in models} == {24}
    assert opening.opened == [folders[1]]
    assert pool.of(definition).dim == 24
    assert pool.of(definition_of(configured)) is configured
    assert [one.dim for one in pool.opened] == [16, 24]


async def test_collection_of_a_model_that_nobody_names_is_refused(opening: Opening, folders: list[str]) -> None:
    """Its vectors mean nothing to the configured model (case VEC-04)."""
    configured, other = opening(folders[0]), opening(folders[1])
    pool = EncoderPool(configured, None, opening)
    with pytest.raises(ModelMismatch, match="migrate the collection"):
        await pool.model_of(definition_of(other))


async def test_model_that_has_changed_is_refused(opening: Opening, folders: list[str]) -> None:
    """The name is the same and the revision is not: the vectors are not of what is there now."""
    configured, other = opening(folders[0]), opening(folders[1])
    pool = EncoderPool(configured, None, opening)
    with pytest.raises(ModelMismatch):
        await pool.model_of(replace(definition_of(other, folders[1]), dense_revision="older"))


async def test_model_that_is_gone_is_a_refusal_and_can_come_back(
    opening: Opening, folders: list[str], tmp_path: Path
) -> None:
    """The error says why it cannot be used; when it is there again, so is the collection."""
    configured, other = opening(folders[0]), opening(folders[1])
    pool = EncoderPool(configured, None, opening)
    definition = definition_of(other, folders[1])
    away = Path(folders[1]).rename(tmp_path / "away")
    with pytest.raises(ModelMismatch, match="cannot be used"):
        await pool.model_of(definition)
    with pytest.raises(ModelNotFound):
        await pool.open(folders[1])
    away.rename(folders[1])
    assert (await pool.model_of(definition)).dim == 24


async def test_configured_model_by_another_name_is_the_configured_one(opening: Opening, folders: list[str]) -> None:
    """A collection that moves to it names no source, so it follows the configuration."""
    configured = opening(folders[0])
    pool = EncoderPool(configured, None, opening)
    encoder, model, source = await pool.open_model(folders[0])
    assert (encoder, source, model.dim) == (configured, "", 16)
    assert (await pool.open_model(""))[2] == ""
    assert (await pool.open_model(folders[1]))[2] == folders[1]


async def test_folder_whose_files_changed_is_opened_anew(opening: Opening, folders: list[str]) -> None:
    """Another model at the same place is another model, also while the first one is still in use."""
    pool = EncoderPool(opening(folders[0]), None, opening)
    first, _, _ = await pool.open_model(folders[1])
    make_tiny_bi_encoder(Path(folders[1]), dim=32, seed=5)
    second, model, _ = await pool.open_model(folders[1])
    assert (first.dim, second.dim, model.dim) == (24, 32, 32)
    assert pool.of(definition_of(first, folders[1])) is first
