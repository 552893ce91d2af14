"""The names of what a collection consists of on the server; a dot cannot stand in a tenant's or a collection's name."""

from __future__ import annotations

from dataclasses import dataclass

from indexers.types import CollectionKey


@dataclass(frozen=True, slots=True)
class PhysicalNames:
    """The physical collections of one collection."""

    prefix: str
    key: CollectionKey

    @property
    def chunks(self) -> str:
        """The alias that the serving generation stands behind."""
        return f"{self.prefix}.{self.key.tenant}.{self.key.collection}"

    @property
    def documents(self) -> str:
        """Where the documents with their texts are."""
        return f"{self.chunks}.documents"

    @property
    def collections(self) -> str:
        """Where all collections of all tenants are listed."""
        return f"{self.prefix}.collections"

    def generation(self, number: int) -> str:
        """The physical collection of a generation."""
        return f"{self.chunks}.g{number}"
