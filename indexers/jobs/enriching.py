"""The Enricher protocol: steps of a job that have a model say something about each document before it is embedded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from indexers.jobs.report import EnrichmentUse
from indexers.types import Document


@dataclass(frozen=True, slots=True)
class Enriched:
    """A document with what the steps have added; what they could not add is said in words."""

    document: Document
    warnings: tuple[str, ...] = ()


class Enricher(Protocol):
    """All steps of one job, in order."""

    @property
    def fingerprint(self) -> str:
        """Names everything that shapes results besides the document."""
        ...

    async def enrich(self, document: Document) -> Enriched:
        """Returns the document with metadata and notes added.

        A step whose budget is used up, or whose answer is not usable, adds nothing and warns.

        Raises:
            TargetUnavailable: no backend can be asked now; trying again may help.
        """
        ...

    def figures(self) -> tuple[EnrichmentUse, ...]:
        """Returns what each step has done and used so far in this run."""
        ...
