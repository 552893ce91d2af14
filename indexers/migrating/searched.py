"""An index, asked as a migration asks what it compares."""

from __future__ import annotations

from collections.abc import Sequence

from encoders.term_statistics import TermStatistics
from indexers.index import Index
from indexers.types import Candidates, CollectionDefinition, SearchQuery


class SearchedIndex:
    """An index as it is searched."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @property
    def definition(self) -> CollectionDefinition:
        """What it promises."""
        return self._index.definition

    @property
    def statistics(self) -> TermStatistics:
        """The term statistics of its weights."""
        return self._index.statistics

    async def search(self, query: SearchQuery) -> Candidates:
        """Searches it."""
        return await self._index.search(query, None)

    async def documents_of(self, chunk_ids: Sequence[str]) -> list[str]:
        """Returns the id of each chunk's document."""
        return [one.document_id for one in await self._index.fetch(chunk_ids)]
