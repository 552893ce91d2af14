"""Makes of a parsed document what a job stores: its id, its metadata, its owner."""

from __future__ import annotations

import re
from dataclasses import replace

from indexers.jobs.spec import JobSpec
from indexers.types import Document, Metadata, Scalar

POLICY_FIELD = "policy_class"


class DocumentMapping:
    """The rules of one job; pure, so it may be used by several threads."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec.metadata
        self._owner = spec.name
        self._policy = spec.policy_class
        self._path = re.compile(spec.metadata.from_path) if spec.metadata.from_path else None

    def mapped(self, document: Document, name: str) -> Document:
        """Returns the document as the job stores it; `name` is its item's, for `from_path`."""
        return replace(
            document,
            document_id=self._spec.id_prefix + document.document_id,
            metadata=self._metadata(document.metadata, name),
            owner=self._owner,
        )

    def _metadata(self, own: Metadata, name: str) -> Metadata:
        """The document's own, then what its path says, then what the job sets: later ones win."""
        renamed = {self._spec.rename.get(key, key): value for key, value in own.items()}
        kept = self._spec.keep
        metadata: dict[str, Scalar | tuple[Scalar, ...]] = {
            key: value for key, value in renamed.items() if kept is None or key in kept
        }
        if self._path is not None and (found := self._path.search(name)) is not None:
            metadata |= {key: value for key, value in found.groupdict().items() if value is not None}
        metadata |= self._spec.set
        if self._policy:
            metadata[POLICY_FIELD] = self._policy
        return metadata
