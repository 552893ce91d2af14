"""Models by definition alone: nothing is computed with them."""

from __future__ import annotations

from indexers.definition import check_model
from indexers.errors import ModelMismatch
from indexers.options import DenseModel
from indexers.types import CollectionDefinition


class SomeModels:
    """Some models that can be used; the first one is the configured one."""

    def __init__(self, *models: DenseModel) -> None:
        self._models = models

    @property
    def configured(self) -> DenseModel:
        """The first one."""
        return self._models[0]

    async def model_of(self, definition: CollectionDefinition) -> DenseModel:
        """Returns the one that the collection is of. Raises: ModelMismatch."""
        for model in self._models:
            try:
                check_model(definition, model)
            except ModelMismatch:
                continue
            return model
        check_model(definition, self.configured)
        raise AssertionError(definition)
