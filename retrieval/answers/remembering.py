"""What was learned of similar questions, kept over restarts: evidence takes hundreds of model calls to gather.

One file a collection, in the data folder, named by a hash of tenant, collection and the model whose vectors the
features were made of; under another model what was learned means nothing. A file that is damaged or of another format
is left out: a control that starts from nothing serves nothing that it should not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import structlog

from retrieval.answers.risk import RiskControl
from retrieval.answers.risk.stored import Arrays, write_arrays
from retrieval.caching.digests import digest_of
from retrieval.scope import VectorSpace

_SAVE_EVERY_S = 60.0
_NAME_BYTES = 16
_log = structlog.get_logger("headrace")


class LearnedFiles:
    """The files of one data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, space: VectorSpace) -> RiskControl:
        """Returns what was learned of a space; a new control when nothing is there or it cannot be read."""
        file = self._file(space)
        try:
            return RiskControl.from_bytes(file.read_bytes())
        except FileNotFoundError:
            return RiskControl()
        except (OSError, ValueError) as error:
            _log.warning("learned_not_read", collection=space.collection.collection, error=str(error))
            return RiskControl()

    def save(self, space: VectorSpace, learned: Arrays) -> None:
        """Writes what was learned of a space, whole or not at all."""
        file = self._file(space)
        written = file.with_suffix(".writing")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            written.write_bytes(write_arrays(learned))
            written.replace(file)
        except OSError as error:
            _log.warning("learned_not_written", collection=space.collection.collection, error=str(error))

    def _file(self, space: VectorSpace) -> Path:
        collection = space.collection
        name = digest_of((collection.tenant, collection.collection, space.model), _NAME_BYTES).hex()
        return self._folder / f"{name}.risk"


class Keeper(Protocol):
    """What has something to save."""

    async def save(self) -> None:
        """Saves what has changed since the last time."""
        ...


@asynccontextmanager
async def saving(keeper: Keeper, every_s: float = _SAVE_EVERY_S) -> AsyncIterator[None]:
    """Saves now and then while the body runs, and once at its end."""
    task = asyncio.create_task(_save_again_and_again(keeper, every_s))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        await keeper.save()


async def _save_again_and_again(keeper: Keeper, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        await keeper.save()
