"""Makes of what came out of a parser what the job stores, or says why not; pure computing, for a worker thread."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from indexers.documents import check_document
from indexers.errors import InvalidInput
from indexers.jobs.running.mapping import DocumentMapping
from indexers.jobs.running.progress import ItemProgress
from indexers.jobs.running.settled import Settled, failed
from indexers.jobs.target import Target
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.types import Document


@dataclass(frozen=True, slots=True)
class Parsed:
    """Something that came out of an item, with the item that it came out of."""

    item: ItemProgress
    parsed: ParsedDocument | ParseFailure


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document that the job stores, before what a detector or a model adds to it."""

    item: ItemProgress
    document: Document
    digest: str  # of the document and of everything that makes the stored one of it
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The document's id."""
        return self.document.document_id


class SeenIds:
    """Which item each document of this run came out of, as hashes: two items must not take turns with one document."""

    def __init__(self) -> None:
        self._items: dict[int, int] = {}

    def other_item(self, document_id: str, item_uri: str) -> bool:
        """Tells whether the document came out of another item before; notes it otherwise."""
        return self._items.setdefault(_hash(document_id), _hash(item_uri)) != _hash(item_uri)


class Preparing:
    """The rules of one job and run."""

    def __init__(self, mapping: DocumentMapping, target: Target, adds: str) -> None:
        """`adds` names everything that is added to documents later on."""
        self._mapping = mapping
        self._target = target
        self._adds = adds.encode()
        self._seen = SeenIds()

    def prepare(self, batch: Sequence[Parsed]) -> tuple[list[Prepared], list[Settled]]:
        """Returns the documents that can be stored, each id once, and what became of the others."""
        prepared: dict[str, Prepared] = {}
        settled: list[Settled] = []
        for one in batch:
            made = self._prepared(one)
            if isinstance(made, Settled):
                settled.append(made)
            elif made.name in prepared or self._seen.other_item(made.name, one.item.lease.uri):
                reason = "a document with the same id came before it in this run; rename one of them"
                settled.append(failed(one.item, f"{made.name} (again)", reason, "same_id"))
            else:
                prepared[made.name] = made
        return list(prepared.values()), settled

    def checked(self, document: Document) -> Document:
        """Returns the document as it can be written.

        Raises:
            InvalidInput: it cannot be; names the field and the bound.
        """
        return check_document(document, self._target.fields)

    def _prepared(self, one: Parsed) -> Prepared | Settled:
        parsed = one.parsed
        if isinstance(parsed, ParseFailure):
            return failed(one.item, parsed.path, parsed.reason, parsed.kind)
        document = self._mapping.mapped(parsed.document, one.item.lease.name)
        try:
            document = self.checked(document)
        except InvalidInput as error:
            return failed(one.item, document.document_id, str(error), "invalid")
        digest = hashlib.blake2b(self._target.fingerprint(document).encode(), digest_size=16)
        digest.update(self._adds)
        return Prepared(one.item, document, digest.hexdigest(), parsed.warnings)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
