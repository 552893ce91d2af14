"""What a job adds to a document after it is parsed: its language, and what models say of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from indexers.errors import TargetUnavailable
from indexers.jobs.enriching import Enriched, Enricher
from indexers.language import REVISION, with_languages
from indexers.types import Document


@dataclass(frozen=True, slots=True)
class NotAdded:
    """Why a document must be tried again later."""

    reason: str


class Adding:
    """The additions of one job."""

    def __init__(self, enricher: Enricher | None, *, detects_language: bool) -> None:
        self._enricher = enricher
        self._detects = detects_language

    @property
    def fingerprint(self) -> str:
        """Names everything that shapes what is added."""
        language = REVISION if self._detects else ""
        return f"{language}/{self._enricher.fingerprint if self._enricher else ''}"

    async def add(self, documents: Sequence[Document]) -> list[Enriched | NotAdded]:
        """Returns each document with what is added to it, in order; models are asked about all of them at once."""
        if self._detects:
            documents = await asyncio.to_thread(with_languages, documents)
        if self._enricher is None:
            return [Enriched(document) for document in documents]
        return list(await asyncio.gather(*(self._enriched(self._enricher, document) for document in documents)))

    async def _enriched(self, enricher: Enricher, document: Document) -> Enriched | NotAdded:
        try:
            return await enricher.enrich(document)
        except TargetUnavailable as error:
            return NotAdded(error.reason)
