"""The dense encoders of a server: the configured one, and those that collections have moved to, opened when needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from encoders.errors import ModelError
from encoders.open import ScheduledDenseEncoder
from indexers.definition import check_model
from indexers.options import DenseModel, SparseModel
from indexers.types import CollectionDefinition

_Stamp: TypeAlias = "tuple[tuple[str, int, int], ...]"


class EncoderPool:
    """Opens each model once. A collection that a catalog has opened has its encoder here."""

    def __init__(
        self,
        configured: ScheduledDenseEncoder,
        sparse: SparseModel | None,
        open_model: Callable[[str], ScheduledDenseEncoder],
    ) -> None:
        """`open_model` opens a model by how its files are named, and may take seconds; `sparse` is every model's."""
        self._encoder = configured
        self._sparse = sparse
        self._open_model = open_model
        self._opening: dict[tuple[str, _Stamp], asyncio.Task[ScheduledDenseEncoder]] = {}
        self._by_revision = {(configured.model_id, configured.revision): configured}

    @property
    def configured(self) -> DenseModel:
        """The model that new collections are made for."""
        return self._as_model(self._encoder)

    @property
    def opened(self) -> list[ScheduledDenseEncoder]:
        """All encoders that are open, the configured one first."""
        return list(self._by_revision.values())

    def of(self, definition: CollectionDefinition) -> ScheduledDenseEncoder:
        """Returns the encoder of a collection that a catalog has opened."""
        return self._by_revision[definition.dense_model_id, definition.dense_revision]

    async def model_of(self, definition: CollectionDefinition) -> DenseModel:
        """Returns the model that a collection's vectors are of, with its encoder open.

        Raises:
            ModelMismatch: it is not the configured one, and what the collection names cannot be opened or is another.
        """
        wanted = definition.dense_model_id, definition.dense_revision
        if wanted not in self._by_revision and definition.dense_source:
            try:
                await self.open(definition.dense_source)
            except ModelError as error:
                check_model(definition, self.configured, str(error))
        model = self._as_model(self._by_revision.get(wanted, self._encoder))
        check_model(definition, model)
        return model

    async def open(self, source: str) -> ScheduledDenseEncoder:
        """Opens a model by what its files are named by, once for all who ask until the files change.

        Raises:
            ModelError: it cannot be used.
        """
        key = source, await asyncio.to_thread(_stamp, source)
        task = self._opening.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._opening[key] = asyncio.create_task(asyncio.to_thread(self._open_model, source))
        encoder = await asyncio.shield(task)
        # Another source may be of the same model; who has the first one's encoder goes on with it.
        return self._by_revision.setdefault((encoder.model_id, encoder.revision), encoder)

    async def open_model(self, source: str) -> tuple[ScheduledDenseEncoder, DenseModel, str]:
        """Returns an encoder, its model, and how a collection is to name it; no source is the configured model's.

        Raises:
            ModelError: it cannot be used.
        """
        source = await asyncio.to_thread(_absolute, source)
        encoder = await self.open(source) if source else self._encoder
        return encoder, self._as_model(encoder), "" if encoder is self._encoder else source

    def _as_model(self, encoder: ScheduledDenseEncoder) -> DenseModel:
        return DenseModel(encoder.model_id, encoder.revision, encoder.dim, encoder.codec, self._sparse)


def _stamp(source: str) -> _Stamp:
    """Returns what tells that the files of a folder have changed; empty for what is no folder."""
    folder = Path(source)
    if not source or not folder.is_dir():
        return ()
    stats = [(one.relative_to(folder).as_posix(), one.stat()) for one in folder.rglob("*") if one.is_file()]
    return tuple(sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats))


def _absolute(source: str) -> str:
    """Returns a folder's name as it is wherever the server is started the next time; other names stay."""
    return str(Path(source).absolute()) if source and Path(source).is_dir() else source
