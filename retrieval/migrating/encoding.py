"""Documents as the next model has them: cut as the jobs that own them ask for, or as the settings say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from encoders.types import WorkClass
from indexers.document_encoding import DocumentEncoder
from indexers.errors import BuildFailed
from indexers.types import Document, EncodedDocument


class ByOwner:
    """Encodes documents, each as its owner's are cut, and counts them."""

    def __init__(self, collection: str, owners: Mapping[str, DocumentEncoder], others: DocumentEncoder) -> None:
        """`owners` are the jobs that ask for chunks of their own, by name."""
        self._collection = collection
        self._owners = owners
        self._others = others
        self.count = 0

    async def __call__(self, documents: Sequence[Document]) -> list[EncodedDocument]:
        """Returns the documents, encoded, in order.

        Raises:
            BuildFailed: one cannot be encoded; says which, and why.
        """
        made: dict[str, EncodedDocument] = {}
        for encoder, theirs in self._grouped(documents):
            for one in await encoder.encode([encoder.checked(document) for document in theirs], WorkClass.BULK):
                if one.document is None:
                    reason = f"document {one.outcome.document_id!r} cannot be encoded: {one.outcome.reason}"
                    raise BuildFailed(self._collection, f"{reason}; delete it, or choose another model")
                made[one.outcome.document_id] = one.document
        self.count += len(documents)
        return [made[document.document_id] for document in documents]

    def _grouped(self, documents: Sequence[Document]) -> list[tuple[DocumentEncoder, list[Document]]]:
        groups: dict[int, tuple[DocumentEncoder, list[Document]]] = {}
        for document in documents:
            encoder = self._owners.get(document.owner, self._others)
            groups.setdefault(id(encoder), (encoder, []))[1].append(document)
        return list(groups.values())
