"""The stages that run on the cluster: read and parse an item; chunk and encode documents. Each is an actor's class.

An actor opens what it needs once and keeps it: parsers, the encoder. It may die at any time; Ray starts another and
gives it the same rows again, which gives the same documents, chunks and vectors.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encoders.types import WorkClass
from indexers.documents import check_document, document_fingerprint
from indexers.errors import InvalidInput, ItemGone, ItemUnreadable, SourceUnavailable
from indexers.ingest import Indexer
from indexers.jobs.running.mapping import DocumentMapping
from indexers.jobs.running.share import parse_options
from indexers.jobs.spec import JobSpec
from indexers.jobs.state import ItemOutcome, ItemState
from indexers.language import with_languages
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.sandbox.limits import SandboxLimits
from indexers.sandbox.pool import ParserPool
from indexers.sources.access import SourceAccess
from indexers.sources.open import open_source
from indexers.sources.source import ItemRef
from indexers.types import CollectionDefinition, Document, FieldType
from retrieval.jobs.ray.rows import Changed, Failed, ItemRead, ItemToRead, Made, Ready, Row, Unchanged, packed, unpacked
from retrieval.server.engines import Chunking, indexer_of, open_encoder, open_sparse_encoder, scheduler_of
from retrieval.settings import Settings


@dataclass(frozen=True, slots=True)
class StageOptions:
    """What all actors of a run are told."""

    settings: Settings
    spec: JobSpec
    base_folder: str
    access: SourceAccess
    chunking: Chunking
    definition: CollectionDefinition
    shaping: str

    @property
    def fields(self) -> Mapping[str, FieldType]:
        """The declared metadata fields."""
        return self.definition.fields


class ParseStage:
    """Reads and parses items, and tells what was stored just so when the run began from what must be encoded."""

    def __init__(self, options: StageOptions, stored: Mapping[str, str]) -> None:
        """`stored` are the fingerprints of the job's documents, by id."""
        self._options = options
        self._stored = stored
        self._mapping = DocumentMapping(options.spec)
        self._scratch = tempfile.TemporaryDirectory(prefix="headrace-ray-")
        folder = Path(self._scratch.name)
        spec, base = options.spec, Path(options.base_folder or ".")
        self._source = open_source(spec.source, base, options.access, folder / "source")
        self._parsers = ParserPool(SandboxLimits(spec.parsing.timeout_s, spec.parsing.max_memory_bytes))

    def __call__(self, row: Row) -> Iterator[Row]:
        """Yields what comes out of an item, and its end."""
        item: ItemToRead = unpacked(row)
        found, outcome = 0, None
        last: Made | None = None
        try:
            for made in self._read(item):
                if last is not None:
                    found += 1
                    yield packed(last)
                last = made
            if found == 0 and isinstance(last, Failed):  # one failure and nothing else is that of the item
                outcome = ItemOutcome(ItemState.FAILED, last.failure.reason, last.failure.kind)
            elif last is not None:
                found += 1
                yield packed(last)
        except SourceUnavailable as error:
            outcome = ItemOutcome(ItemState.QUEUED, error.reason, "unavailable", error.retry_after_s)
        except ItemGone as error:
            outcome = ItemOutcome(ItemState.SKIPPED, error.reason, "gone")
        except ItemUnreadable as error:
            outcome = ItemOutcome(ItemState.FAILED, error.reason, error.kind)
        yield packed(ItemRead(item.number, found, outcome))

    def _read(self, item: ItemToRead) -> Iterator[Made]:
        with ExitStack() as stack:
            file = self._file(item, stack)
            for one in self._parsers.parse(file, parse_options(self._options.spec)):
                if isinstance(one, SkippedFile):
                    raise ItemGone(one.path, one.reason)
                yield self._made(item, one)

    def _file(self, item: ItemToRead, stack: ExitStack) -> SourceFile:
        lease = item.lease
        if item.content is None:
            ref = ItemRef(lease.uri, lease.name, lease.fingerprint, lease.size_bytes)
            return stack.enter_context(self._source.open(ref))
        path = Path(self._scratch.name, f"item{item.number}{Path(lease.name).suffix}")
        path.write_bytes(item.content)
        stack.callback(path.unlink, missing_ok=True)
        return SourceFile(path, lease.name, lease.uri)

    def _made(self, item: ItemToRead, one: SourceItem) -> Made:
        if isinstance(one, ParseFailure):
            return Failed(item.number, one)
        assert isinstance(one, ParsedDocument)
        document = self._mapping.mapped(one.document, item.lease.name)
        try:
            document = self._added(check_document(document, self._options.fields))
        except InvalidInput as error:
            return Failed(item.number, ParseFailure(document.document_id, item.lease.uri, str(error), "invalid"))
        fingerprint = document_fingerprint(document, self._options.shaping)
        if self._stored.get(document.document_id) == fingerprint:
            return Unchanged(item.number, document.document_id, fingerprint)
        return Changed(item.number, document, one.warnings)

    def _added(self, document: Document) -> Document:
        if not self._options.spec.parsing.detect_language:
            return document
        return check_document(with_languages([document])[0], self._options.fields)


class EncodeStage:
    """Chunks and encodes documents with an encoder of its own; hands everything else on."""

    def __init__(self, options: StageOptions) -> None:
        self._stack = ExitStack()
        scheduler = self._stack.enter_context(scheduler_of(options.settings))
        encoder = open_encoder(options.settings, scheduler, model=options.definition.dense_source)
        sparse = open_sparse_encoder(options.settings, scheduler)
        index: Any = _Defined(options.definition)
        made = indexer_of(options.settings.chunking, lambda _: encoder, scheduler, sparse)
        self._indexer: Indexer = made(index, options.chunking)
        self._loop = asyncio.new_event_loop()

    def __call__(self, batch: Row) -> Row:
        """Returns the rows of a batch, documents encoded."""
        values: list[Made] = [unpacked({"value": value}) for value in batch["value"]]
        changed = [value for value in values if isinstance(value, Changed)]
        encoding = self._indexer.encode([one.document for one in changed], WorkClass.BULK)
        encoded = iter(self._loop.run_until_complete(encoding))
        ready = [
            Ready(one.number, one.document, next(encoded), one.warnings) if isinstance(one, Changed) else one
            for one in values
        ]
        return {"value": [packed(value)["value"] for value in ready]}


@dataclass(frozen=True, slots=True)
class _Defined:
    """As much of an Index as encoding asks for: what the collection promises."""

    definition: CollectionDefinition
