"""What goes from one stage to the next: one pickled value a row, since documents and vectors are no columns.

Only processes of one cluster, which run our code with our data, read it.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, TypeAlias

from indexers.jobs.state import ItemLease, ItemOutcome
from indexers.parsing.parsed import ParseFailure
from indexers.preparation import Encoded
from indexers.types import Document

Row: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True)
class ItemToRead:
    """An item; `content` holds its bytes where only the driver can open it."""

    number: int
    lease: ItemLease
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A document that was stored so when the run began."""

    number: int
    document_id: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A document to be encoded."""

    number: int
    document: Document
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """A document to be written."""

    number: int
    document: Document
    encoded: Encoded
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A document, or a row, that cannot be indexed."""

    number: int
    failure: ParseFailure


@dataclass(frozen=True, slots=True)
class ItemRead:
    """The end of an item: how much has come out of it, or why nothing can."""

    number: int
    found: int
    outcome: ItemOutcome | None = None


Made: TypeAlias = Unchanged | Changed | Ready | Failed | ItemRead


def packed(value: ItemToRead | Made) -> Row:
    """Returns a value as a row."""
    return {"value": pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)}


def unpacked(row: Row) -> Any:
    """Returns the value of a row."""
    return pickle.loads(row["value"])  # noqa: S301 - made by `packed` in a process of the same cluster
