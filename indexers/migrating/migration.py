"""What a migration is, whichever store holds the collection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from encoders.term_statistics import TermStatistics
from indexers.definition import new_definition
from indexers.options import DenseModel
from indexers.types import Candidates, CollectionDefinition, Document, EncodedDocument, SearchQuery

Encode: TypeAlias = Callable[[Sequence[Document]], Awaitable[list[EncodedDocument]]]
"""Chunks and encodes documents as a model has them, in order; raises BuildFailed when one cannot be encoded."""

Progress: TypeAlias = Callable[[int, int], None]
"""Hears how many documents there are, and how many were looked at."""


@dataclass(frozen=True, slots=True)
class Destination:
    """What a collection moves to."""

    model: DenseModel
    source: str
    """How the model's files are named; empty for the configured model."""
    encode: Encode
    token_vectors: bool
    """Whether token vectors are stored, if the model has any."""

    def described(self, serving: CollectionDefinition) -> CollectionDefinition:
        """Returns the definition of a collection as it is to be."""
        return described(serving, self.model, self.source, token_vectors=self.token_vectors)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a migration stands: what serves, what is being built, and what served before."""

    serving: CollectionDefinition
    building: CollectionDefinition | None = None
    previous: CollectionDefinition | None = None


class Searched(Protocol):
    """What can be searched: what serves, or what was built and does not serve yet."""

    @property
    def definition(self) -> CollectionDefinition:
        """What it promises."""
        ...

    @property
    def statistics(self) -> TermStatistics:
        """The term statistics that its weights were made with."""
        ...

    async def search(self, query: SearchQuery) -> Candidates:
        """Searches it as requests do, without a filter."""
        ...

    async def documents_of(self, chunk_ids: Sequence[str]) -> list[str]:
        """Returns the id of each chunk's document."""
        ...


class Built(Searched, Protocol):
    """What was built and does not serve yet."""

    async def texts(self, count: int) -> list[str]:
        """Returns the texts of up to so many chunks, chosen by chance."""
        ...


Check: TypeAlias = Callable[[Built], Awaitable[None]]
"""Raises BuildFailed when what was built must not serve."""


class Migration(Protocol):
    """The migration of one collection, which serves and is written meanwhile; one process at a time carries it out.

    Whatever breaks off goes on from where it was when it is run again.
    """

    async def standing(self) -> Standing:
        """Returns where it stands."""
        ...

    async def run(self, to: Destination, check: Check, progress: Progress | None = None) -> None:
        """Builds beside what serves, follows what is written meanwhile, checks, and changes over in one step.

        What served before is kept, and going back is a migration to it. Nothing happens when the model serves already.

        Raises:
            BuildFailed: what was built is not what the collection holds, a check failed, or writes come too fast;
                the collection serves as before.
            IndexUnavailable: the store failed; run it again.
        """
        ...

    async def forget(self) -> None:
        """Removes what served before."""
        ...

    async def cancel(self) -> None:
        """Removes what was begun and does not serve."""
        ...


def described(
    serving: CollectionDefinition, model: DenseModel, source: str, *, token_vectors: bool
) -> CollectionDefinition:
    """Returns the definition of a collection as it is to be."""
    fields, description = serving.fields, serving.description
    made = new_definition(serving.key, fields, description, model, token_vectors=token_vectors)
    return replace(made, created_at=serving.created_at, dense_source=source)


def same_vectors(one: CollectionDefinition, other: CollectionDefinition) -> bool:
    """Tells whether two definitions promise the same vectors of the same collection."""

    def vectors(of: CollectionDefinition) -> tuple[object, ...]:
        dense = (of.dense_model_id, of.dense_revision, of.dim, of.code_bytes)
        return (*dense, of.sparse_model_id, of.sparse_revision, of.created_at)

    return vectors(one) == vectors(other)
