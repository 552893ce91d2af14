"""Hits to hits with more of their documents around them, where the settings ask for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from encoders.types import TokenCounter
from indexers.index import Index
from indexers.types import Document
from retrieval.assembly.expanding import Outline, expanded
from retrieval.types import Expansion, Hit


async def expand(index: Index, hits: Sequence[Hit], expansion: Expansion, counter: TokenCounter) -> list[Hit]:
    """Returns the hits with widened passages, in their order and with their scores.

    The documents are those of now: where one has changed since it was searched, its passage stays as it was found.

    Raises:
        IndexUnavailable: the store cannot be reached.
    """
    names = list(dict.fromkeys(hit.passage.document_id for hit in hits))
    found = await asyncio.gather(*(index.get_document(name) for name in names))
    documents = {name: document for name, document in zip(names, found, strict=True) if document is not None}
    return await asyncio.to_thread(_expanded, hits, documents, expansion, counter)


def _expanded(
    hits: Sequence[Hit], documents: dict[str, Document], expansion: Expansion, counter: TokenCounter
) -> list[Hit]:
    outlines = {name: Outline.of(document) for name, document in documents.items()}
    wider: list[Hit] = []
    for hit in hits:
        outline = outlines.get(hit.passage.document_id)
        wide = hit.passage if outline is None else expanded(hit.passage, outline, expansion, counter)
        wider.append(hit if wide is hit.passage else replace(hit, passage=wide))
    return wider
