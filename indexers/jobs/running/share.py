"""One process' share of a run: everything between the queue of items and the collection, put together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from indexers.jobs.running.adding import Adding
from indexers.jobs.running.batches import Batches
from indexers.jobs.running.collecting import Collected
from indexers.jobs.running.documents import DocumentWriting
from indexers.jobs.running.items import ItemWorker, WorksOnItems
from indexers.jobs.running.known import Known
from indexers.jobs.running.mapping import DocumentMapping
from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.preparing import Preparing
from indexers.jobs.running.reading import ItemReader
from indexers.jobs.spec import JobSpec
from indexers.jobs.state import Run
from indexers.parsing.options import ParseOptions
from indexers.sources.spec import SqlSource
from indexers.types import Document, TextFormat

KNOWN = "known.sqlite"
PARSERS = 1  # raised whenever the parsers make other documents of the same files


@dataclass(frozen=True, slots=True)
class Share:
    """The parts that a run shares with others are in `RunParts`; these are this process' own."""

    items: WorksOnItems
    known: Known
    collected: Collected


@contextmanager
def share_of(parts: RunParts, run: Run) -> Iterator[Share]:
    """Puts a share of the run together, and closes what it has opened."""
    parsing = run.spec.parsing
    adding = Adding(parts.enricher, detects_language=parsing.detect_language)
    known = Known(parts.folder / KNOWN, _shape(parts, run.spec, adding.fingerprint))
    try:
        collected = Collected(known, parsing.near_duplicates)
        preparing = Preparing(DocumentMapping(run.spec), parts.target, adding.fingerprint)
        writing = DocumentWriting(parts, preparing, adding, known, run.run_id)
        reader = ItemReader(parts, parse_options(run.spec))
        batches = Batches(writing, collected)
        here = ItemWorker(parts, run, reader, batches, known)
        yield Share(parts.items_of(parts, run, collected) if parts.items_of else here, known, collected)
    finally:
        known.close()


def parse_options(job: JobSpec) -> ParseOptions:
    """Returns the options of the parsers that a job asks for; of a database the columns are named in its source."""
    spec = job.parsing
    if isinstance(job.source, SqlSource):
        return ParseOptions(max_file_bytes=spec.max_file_bytes, row_format=TextFormat(job.source.format))
    return ParseOptions(
        max_file_bytes=spec.max_file_bytes,
        id_field=spec.id_field,
        title_field=spec.title_field,
        text_fields=spec.text_fields,
    )


def _shape(parts: RunParts, spec: JobSpec, adds: str) -> str:
    """Names everything that makes stored documents of an item's content."""
    ours = parts.target.fingerprint(Document("any", "", "any", owner=spec.name, metadata={"policy": spec.policy_class}))
    digest = hashlib.blake2b(digest_size=8)
    form = spec.source.format if isinstance(spec.source, SqlSource) else ""
    for part in (spec.parsing.model_dump_json(), spec.metadata.model_dump_json(), adds, ours, str(PARSERS), form):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()
