"""The models whose vectors collections hold, as whoever opens collections knows them."""

from __future__ import annotations

from typing import Protocol

from indexers.definition import check_model
from indexers.options import DenseModel
from indexers.types import CollectionDefinition


class Models(Protocol):
    """The models that can be used."""

    @property
    def configured(self) -> DenseModel:
        """The model that new collections are made for."""
        ...

    async def model_of(self, definition: CollectionDefinition) -> DenseModel:
        """Returns the model that a collection's vectors are of, ready for use.

        Raises:
            ModelMismatch: it is neither the configured one nor can it be opened.
        """
        ...


class OneModel:
    """The configured model and no other."""

    def __init__(self, model: DenseModel) -> None:
        self._model = model

    @property
    def configured(self) -> DenseModel:
        """The model."""
        return self._model

    async def model_of(self, definition: CollectionDefinition) -> DenseModel:
        """Returns the model if the collection is of it. Raises: ModelMismatch."""
        check_model(definition, self._model)
        return self._model
