"""Which encoder a collection's vectors are of: collections may have moved to other models than the configured one."""

from __future__ import annotations

from typing import Protocol

from encoders.types import AsyncDenseEncoder
from indexers.types import CollectionDefinition


class CollectionEncoders(Protocol):
    """The dense encoders of the collections that are open."""

    def of(self, definition: CollectionDefinition) -> AsyncDenseEncoder:
        """Returns the encoder of a collection that a catalog has opened."""
        ...


class OneEncoder:
    """The same encoder for every collection."""

    def __init__(self, encoder: AsyncDenseEncoder) -> None:
        self._encoder = encoder

    def of(self, definition: CollectionDefinition) -> AsyncDenseEncoder:
        """Returns the encoder; a catalog of one model opens no collection of another."""
        return self._encoder
