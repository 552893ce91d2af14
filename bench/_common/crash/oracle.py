"""What the index must hold, worked out from the files alone: ids, fingerprints and chunks, without a vector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from indexers.chunking import Chunker
from indexers.documents import check_document, document_fingerprint
from indexers.jobs.running.mapping import DocumentMapping
from indexers.jobs.spec import JobSpec
from indexers.language import with_languages
from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument
from indexers.types import FieldType
from retrieval.server.engines import chunker_of, open_encoder, scheduler_of
from retrieval.settings import Settings


@dataclass(frozen=True, slots=True)
class Expected:
    """One document as it must be stored."""

    fingerprint: str
    chunk_ids: tuple[str, ...]


@contextmanager
def oracle_of(settings: Settings) -> Iterator[Oracle]:
    """Opens the tokenizer that documents are cut with."""
    with scheduler_of(settings) as scheduler:
        yield Oracle(chunker_of(settings.chunking, open_encoder(settings, scheduler)))


class Oracle:
    """Indexes nothing, and knows what a whole run over a folder must leave behind."""

    def __init__(self, chunker: Chunker) -> None:
        self._chunker = chunker

    def expected(self, folder: Path, spec: JobSpec, shaping: str) -> dict[str, Expected]:
        """Returns every document that the folder gives, by id."""
        mapping, fields = DocumentMapping(spec), {"language": FieldType.KEYWORD}
        found: dict[str, Expected] = {}
        for path in sorted(folder.iterdir()):
            for item in parse_file(SourceFile(path, path.name, path.as_uri())):
                assert isinstance(item, ParsedDocument), item
                [document] = with_languages([mapping.mapped(item.document, path.name)])
                document = check_document(document, fields)
                chunks = self._chunker.chunk(document)
                fingerprint = document_fingerprint(document, shaping)
                found[document.document_id] = Expected(fingerprint, tuple(chunk.chunk_id for chunk in chunks))
        return found
