"""The names of what a collection consists of on the server; a dot cannot stand in a tenant's or a collection's name."""

from __future__ import annotations

from dataclasses import dataclass

from indexers.types import CollectionKey


@dataclass(frozen=True, slots=True)
class PhysicalNames:
    """The physical collections of one collection."""

    prefix: str
    key: CollectionKey
    pinned: tuple[str, str] = ("", "")
    """Physical chunks and documents that are used instead of what serves; empty for none."""

    @property
    def base(self) -> str:
        """What all names of the collection begin with, and the alias that the serving generation stands behind."""
        return f"{self.prefix}.{self.key.tenant}.{self.key.collection}"

    @property
    def chunks(self) -> str:
        """Where chunks are searched."""
        return self.pinned[0] or self.base

    @property
    def documents(self) -> str:
        """The alias that the documents with their texts stand behind."""
        return self.pinned[1] or f"{self.base}.documents"

    def documents_version(self, number: int) -> str:
        """The physical collection of the documents as one model's chunks have them."""
        return f"{self.base}.documents.d{number}"

    @property
    def collections(self) -> str:
        """Where all collections of all tenants are listed."""
        return f"{self.prefix}.collections"

    def generation(self, number: int) -> str:
        """The physical collection of a generation."""
        return f"{self.base}.g{number}"
