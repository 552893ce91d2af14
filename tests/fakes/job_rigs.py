"""A job's surroundings in this process: a source in a dictionary, parsers without a sandbox, a real embedded index."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from indexers.catalog import EmbeddedCatalog
from indexers.chunking import Chunker, ChunkLimits
from indexers.errors import CollectionNotFound, ItemGone
from indexers.index import Index
from indexers.ingest import Indexer
from indexers.jobs.declaring import declared_fields
from indexers.jobs.index_target import IndexTarget
from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.runner import JobRunner
from indexers.jobs.spec import JobSpec
from indexers.jobs.sqlite.store import SqliteJobStore
from indexers.jobs.state import Job, JobKey, Run, RunClaim, RunRequest
from indexers.jobs.store import JobStore
from indexers.jobs.target import Looked
from indexers.models import OneModel
from indexers.options import DenseModel, IndexOptions, ShardKind
from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import SourceItem
from indexers.reports import UpsertReport
from indexers.sources.source import ItemRef, Scanned
from indexers.types import CollectionKey, Document
from tests.fakes.encoders import HashEncoder, PieceCounter

KEY = JobKey("default", "handbook")
Hook = Callable[[str], None]


@dataclass
class DictSource:
    """Files in a dictionary. `extra` is listed besides; `on_open` is called before an item is opened, and may raise."""

    files: dict[str, bytes]
    extra: list[Scanned] = field(default_factory=list)
    on_open: Hook = lambda name: None
    complete: bool = True
    deleted: Sequence[str] = ()
    opened: list[str] = field(default_factory=list)
    committed: int = 0

    def scan(self) -> Iterator[Scanned]:
        yield from self.extra
        for name, content in sorted(self.files.items()):
            fingerprint = hashlib.blake2b(content, digest_size=8).hexdigest()
            yield ItemRef(f"memory:///{name}", name, fingerprint, len(content))

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        self.opened.append(ref.name)
        self.on_open(ref.name)
        if ref.name not in self.files:
            raise ItemGone(ref.name, "is no longer there")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, Path(ref.name).name)
            path.write_bytes(self.files[ref.name])
            yield SourceFile(path, ref.name, ref.uri)

    def deleted_ids(self) -> Sequence[str]:
        return self.deleted

    def commit(self) -> None:
        self.committed += 1

    def close(self) -> None:
        pass


class HereParsers:
    """Parses in this process."""

    def parse(self, file: SourceFile, options: ParseOptions) -> Iterator[SourceItem]:
        yield from parse_file(file, options)


class HookedTarget:
    """A target that calls something before each write, as another writer who is quicker."""

    def __init__(self, inner: IndexTarget) -> None:
        self._inner = inner
        self.before_write: Callable[[Sequence[Document]], object] = lambda documents: None
        self.before_look: Callable[[], object] = lambda: None
        self.finished = 0

    @property
    def fields(self):
        return self._inner.fields

    def fingerprint(self, document: Document) -> str:
        return self._inner.fingerprint(document)

    async def look(self, document_ids: Sequence[str]) -> Looked:
        await _called(self.before_look())
        return await self._inner.look(document_ids)

    async def write(self, documents: Sequence[Document], since: int) -> UpsertReport:
        await _called(self.before_write(documents))
        return await self._inner.write(documents, since)

    async def delete(self, document_ids: Sequence[str], since: int) -> int:
        return await self._inner.delete(document_ids, since)

    async def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        return await self._inner.owned(owner, after, limit)

    async def chunk_ids(self, document_ids: Sequence[str]) -> list[str]:
        return await self._inner.chunk_ids(document_ids)

    async def present(self, chunk_ids: Sequence[str]) -> list[str]:
        return await self._inner.present(chunk_ids)

    async def finish(self) -> None:
        self.finished += 1
        await self._inner.finish()


async def _called(result: object) -> None:
    if asyncio.iscoroutine(result):
        await result


@dataclass
class Rig:
    """One job over one collection."""

    folder: Path
    source: DictSource
    index: Index
    encoder: HashEncoder
    target: HookedTarget
    store: JobStore
    spec: JobSpec

    def parts(self, worker: str = "here", **changes: object) -> RunParts:
        """Returns what a run is carried out with."""
        values: dict[str, object] = {
            "store": self.store,
            "source": self.source,
            "parsers": HereParsers(),
            "target": self.target,
            "folder": self.folder / "job",
            "worker": worker,
            "patience_s": 5.0,
            **changes,
        }
        return RunParts(**values)  # type: ignore[arg-type]

    async def submit(self, request: RunRequest | None = None) -> Run:
        """Declares the job as it is now, and queues a run."""
        await self.store.put_job(Job(KEY, self.spec, "", datetime.now(UTC)))
        return await self.store.submit(KEY, request or RunRequest())

    async def claim(self, worker: str = "here", lease_s: float = 30.0) -> RunClaim:
        """Claims the queued run."""
        claim = await self.store.claim_run(worker, lease_s)
        assert claim is not None
        return claim

    async def run(self, request: RunRequest | None = None, **changes: object) -> Run:
        """Carries out a run to its end."""
        await self.submit(request)
        return await JobRunner(self.parts(**changes), await self.claim()).run()

    async def stored(self) -> dict[str, str]:
        """Returns the texts of all documents that the index holds."""
        names = [name for name, _ in await self.index.owned(KEY.name, "", 10_000)]
        documents = [await self.index.get_document(name) for name in names]
        return {one.document_id: one.text for one in documents if one is not None}


def spec_of(**parts: Mapping[str, object] | str) -> JobSpec:
    """Returns a job whose retries do not wait."""
    tree: dict[str, object] = {
        "name": KEY.name,
        "collection": "docs",
        "source": {"kind": "folder", "path": "."},
        "limits": {"backoff_s": 0.0},
        "parsing": {"detect_language": False},
        **parts,
    }
    return JobSpec.model_validate(tree)


@asynccontextmanager
async def rig_of(folder: Path, spec: JobSpec | None = None, store: JobStore | None = None) -> AsyncIterator[Rig]:
    """Opens a rig with an empty collection."""
    spec, encoder = spec or spec_of(), HashEncoder()
    async with AsyncExitStack() as stack:
        model = DenseModel("hash", encoder.revision, encoder.dim)
        catalog = EmbeddedCatalog(
            folder / "data", OneModel(model), IndexOptions(ShardKind.EXACT, build_automatically=False)
        )
        stack.push_async_callback(catalog.close)
        key = CollectionKey(KEY.tenant, spec.collection)
        try:
            index = await catalog.open(key)
        except CollectionNotFound:
            index = await catalog.create(key, declared_fields(spec, {}), "")
        limits = ChunkLimits(64, 40, 8)
        indexer = Indexer(index, encoder, Chunker(PieceCounter(), limits))
        target = HookedTarget(IndexTarget(index, indexer, builds=False))
        if store is None:
            store = SqliteJobStore(folder / "jobs.sqlite")
            stack.push_async_callback(store.close)
        yield Rig(folder, DictSource({}), index, encoder, target, store, spec)
