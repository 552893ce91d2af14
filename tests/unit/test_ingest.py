"""The way of documents into an Index."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from encoders.errors import SchedulerFull
from encoders.late.codec import LevelCodec
from encoders.types import Outcome, TextKind, WorkClass
from indexers.chunking import Chunker, ChunkLimits
from indexers.errors import IndexUnavailable, InvalidDocument, TypeMismatch
from indexers.index import Index
from indexers.ingest import Indexer
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.reports import DocumentStatus, IndexCounts
from indexers.types import Document, EncodedDocument, Epoch, FieldType
from tests.fakes.encoders import HashEncoder, PieceCounter, unit_vector, word_vectors
from tests.fakes.memory_index import MemoryIndex

WRITTEN, UNCHANGED, FAILED = DocumentStatus.WRITTEN, DocumentStatus.UNCHANGED, DocumentStatus.FAILED


def _document(name: str, text: str = "some text", uri: str = "") -> Document:
    return Document(name, f"Title {name}", text, source_uri=uri)


def _indexer(index: Index, encoder: HashEncoder | None = None, limits: ChunkLimits | None = None) -> Indexer:
    return Indexer(index, encoder or HashEncoder(), Chunker(PieceCounter(), limits))


def _parsed(*names: str, root: str = "file:///docs/") -> list[SourceItem]:
    return [ParsedDocument(_document(name, f"text of {name}", root + name)) for name in names]


async def test_upsert_writes_chunks_with_vectors_and_terms() -> None:
    """What is embedded and counted is the header with the text, as passages, in the class that was asked for."""
    index, encoder = MemoryIndex(), HashEncoder()
    report = await _indexer(index, encoder).upsert([_document("a", "valve words")], WorkClass.ONLINE)
    (chunk,) = index.documents["a"].chunks
    assert encoder.texts == ["Title a\nvalve words"]
    assert encoder.work_classes == [WorkClass.ONLINE]
    assert np.array_equal(chunk.dense, unit_vector("Title a\nvalve words", 8))
    assert chunk.terms.length == 3  # "a" is a stop word
    assert [(one.document_id, one.status, one.chunk_count) for one in report.outcomes] == [("a", WRITTEN, 1)]
    assert report.epoch == Epoch(1, 1)


async def test_upsert_skips_what_has_not_changed() -> None:
    """The same document is not embedded again; another title, text, metadata, model or chunk size is."""
    index, document = MemoryIndex(), _document("a")
    indexer = _indexer(index)
    await indexer.upsert([document], WorkClass.ONLINE)
    again = await indexer.upsert([document], WorkClass.ONLINE)
    assert [one.status for one in again.outcomes] == [UNCHANGED]
    assert index.upserts == [["a"]]
    for changed in (replace(document, title="B"), replace(document, text="b"), replace(document, metadata={"x": 1})):
        assert (await indexer.upsert([changed], WorkClass.ONLINE)).outcomes[0].status is WRITTEN
        await indexer.upsert([document], WorkClass.ONLINE)
    for other in (_indexer(index, HashEncoder(revision="r2")), _indexer(index, limits=ChunkLimits(target_tokens=100))):
        assert (await other.upsert([document], WorkClass.ONLINE)).outcomes[0].status is WRITTEN


async def test_token_codes_come_out_of_the_same_run() -> None:
    """A collection that stores token vectors gets each chunk's codes, and no text is encoded twice for them."""
    codec = LevelCodec(8, 4)
    index, encoder = MemoryIndex(code_bytes=codec.code_bytes), HashEncoder(codec=codec)
    await _indexer(index, encoder).upsert([_document("a", "valve words")], WorkClass.ONLINE)
    await _indexer(index, encoder).run(_parsed("b"))
    assert encoder.texts == ["Title a\nvalve words", "Title b\ntext of b"]
    for name, text in zip("ab", encoder.texts, strict=True):
        (chunk,) = index.documents[name].chunks
        assert np.array_equal(chunk.dense, unit_vector(text, 8))
        assert chunk.codes is not None
        assert np.array_equal(chunk.codes, codec.encode(word_vectors(text, 8)))


async def test_token_codes_are_left_out_where_they_are_not_stored() -> None:
    """A collection without token vectors gets none, and the same document counts as changed for one with them."""
    codec = LevelCodec(8, 4)
    plain, late = MemoryIndex(), MemoryIndex(code_bytes=codec.code_bytes)
    for index in (plain, late):
        await _indexer(index, HashEncoder(codec=codec)).upsert([_document("a")], WorkClass.ONLINE)
    assert plain.documents["a"].chunks[0].codes is None
    assert plain.documents["a"].fingerprint != late.documents["a"].fingerprint


async def test_a_document_that_fails_to_encode_fails_alone() -> None:
    """Nothing of it is written, the reason names the chunk, and the others are there."""
    index = MemoryIndex()
    documents = [_document("a"), _document("b", "POISON"), _document("c")]
    report = await _indexer(index).upsert(documents, WorkClass.ONLINE)
    assert [one.status for one in report.outcomes] == [WRITTEN, FAILED, WRITTEN]
    assert "chunk 0" in report.outcomes[1].reason
    assert sorted(index.documents) == ["a", "c"]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (_document("b", " \n"), "documents[1].text"),
        (_document("b", ""), "documents[1].text"),
        (_document("b", "x" * 10_000_001), "documents[1].text"),
        (_document("b", "nul \x00"), "documents[1].text"),
        (_document("b", "half \ud83d"), "documents[1].text"),
        (_document(""), "documents[1].id"),
        (_document("b" * 513), "documents[1].id"),
        (_document("b\n"), "documents[1].id"),
        (_document("a"), "documents[1].id"),
        (Document("b", "t" * 100_001, "x"), "documents[1].title"),
        (Document("b", "", "x", source_uri="u" * 4097), "documents[1].source_uri"),
        (Document("b", "", "x", metadata={"year": float("nan")}), "documents[1].metadata.year"),
    ],
)
async def test_upsert_refuses_an_invalid_document_and_writes_nothing(document: Document, field: str) -> None:
    """The error names the document, the field and the bound, and the valid ones of the call are not written either."""
    index = MemoryIndex()
    with pytest.raises((InvalidDocument, TypeMismatch)) as caught:
        await _indexer(index).upsert([_document("a"), document], WorkClass.ONLINE)
    assert caught.value.field == field
    assert caught.value.bound
    assert index.documents == {}


async def test_upsert_coerces_metadata_to_the_declared_types() -> None:
    """A declared field is stored as its type, or refused with the document's position."""
    index = MemoryIndex({"year": FieldType.INTEGER})
    indexer = _indexer(index)
    await indexer.upsert([replace(_document("a"), metadata={"year": "2021"})], WorkClass.ONLINE)
    assert index.documents["a"].document.metadata == {"year": 2021}
    with pytest.raises(TypeMismatch) as caught:
        await indexer.upsert([replace(_document("a"), metadata={"year": "new"})], WorkClass.ONLINE)
    assert caught.value.field == "documents[0].metadata.year"


async def test_a_full_encoder_delays_bulk_work_and_refuses_online_work() -> None:
    """Whoever waits is told at once; a run waits for its turn."""
    index = MemoryIndex()
    with pytest.raises(SchedulerFull):
        await _indexer(index, HashEncoder(refusals=1)).upsert([_document("a")], WorkClass.ONLINE)
    report = await _indexer(index, HashEncoder(refusals=3)).run(_parsed("a"))
    assert report.counts.written == 1


async def test_run_reports_everything_that_came_by() -> None:
    """Failures, skips, duplicates and warnings are listed with their reasons; nothing stops the run."""
    index = MemoryIndex()
    items: list[SourceItem] = [
        *_parsed("a", "b"),
        ParseFailure("bad.pdf", "file:///docs/bad.pdf", "encrypted"),
        SkippedFile("x.bin", "unknown suffix"),
        *_parsed("a"),
        ParsedDocument(_document("empty", " ")),
        ParsedDocument(_document("poisoned", "POISON")),
        ParsedDocument(_document("paged", "text"), ("pages 3-8 have no text",)),
    ]
    report = await _indexer(index).run(items)
    assert [problem.name for problem in report.failures] == ["bad.pdf", "a", "empty", "poisoned"]
    assert [(problem.name, problem.reason) for problem in report.skips] == [("x.bin", "unknown suffix")]
    assert [(problem.name, problem.reason) for problem in report.warnings] == [("paged", "pages 3-8 have no text")]
    assert (report.counts.written, report.counts.failed, report.counts.skipped, report.counts.chunks) == (3, 4, 1, 3)


class _Overlapping(HashEncoder):
    """Ends its first call only when a second one is there."""

    def __init__(self) -> None:
        super().__init__()
        self._second = asyncio.Event()
        self._calls = 0

    async def encode(
        self, texts: Sequence[str], kind: TextKind, work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        self._calls += 1
        if self._calls == 2:
            self._second.set()
        encoding = asyncio.create_task(super().encode(texts, kind, work_class, deadline_ns))
        await asyncio.wait_for(self._second.wait(), 10)
        return await encoding


async def test_run_writes_in_order_with_bounded_work_in_flight() -> None:
    """Batches are encoded side by side, written in the order of their coming, and reported as they are written."""
    index, encoder = MemoryIndex(), _Overlapping()

    class Heard:
        counts: list[IndexCounts] = []  # noqa: RUF012

        def advanced(self, counts: IndexCounts) -> None:
            self.counts.append(counts)

    names = [f"d{number:04}" for number in range(1000)]
    report = await _indexer(index, encoder).run(_parsed(*names), progress=Heard())
    assert [name for batch in index.upserts for name in batch] == names
    assert report.counts.written == 1000
    assert report.counts.tokens == sum(PieceCounter().count(text) + 2 for text in encoder.texts)
    assert encoder.most_in_flight <= 4 * 64
    written = [counts.written for counts in Heard.counts]
    assert written == sorted(written)
    assert written[-1] == 1000
    assert len(set(written)) > 10


async def test_run_takes_no_more_of_the_stream_than_it_works_on() -> None:
    """Memory does not depend on the length of the stream: reading stays a few batches ahead of writing."""
    index = MemoryIndex()
    lead: list[int] = []

    def stream() -> Iterator[SourceItem]:
        for number in range(1500):
            lead.append(number - len(index.documents))
            yield from _parsed(f"d{number}")

    await _indexer(index).run(stream())
    assert max(lead) <= 5 * 64


async def test_a_second_run_embeds_what_changed_and_removes_what_is_gone() -> None:
    """Documents under the root that no longer come by are removed; others are left alone."""
    index = MemoryIndex()
    root = "file:///docs/"
    await _indexer(index).run(_parsed("a", "b", "c"), roots=[root])
    await _indexer(index).run(_parsed("z", root="file:///other/"), roots=["file:///other/"])
    encoder = HashEncoder()
    items = [*_parsed("a"), ParsedDocument(_document("b", "new", root + "b"))]
    report = await _indexer(index, encoder).run(items, roots=[root])
    assert sorted(index.documents) == ["a", "b", "z"]
    assert len(encoder.texts) == 1
    assert (report.counts.unchanged, report.counts.written, report.counts.removed) == (1, 1, 1)


async def test_pruning_keeps_what_could_not_be_read() -> None:
    """A file that fails now keeps its rows from before, and an invalid new version keeps the old one."""
    index = MemoryIndex()
    root = "file:///docs/"
    await _indexer(index).run(_parsed("a", "rows.csv#1", "rows.csv#2", "v"), roots=[root])
    items = [
        *_parsed("a"),
        ParseFailure("rows.csv", root + "rows.csv", "cut off"),
        ParsedDocument(_document("v", " ", root + "v")),
    ]
    report = await _indexer(index).run(items, roots=[root])
    assert sorted(index.documents) == ["a", "rows.csv#1", "rows.csv#2", "v"]
    assert report.counts.removed == 0


async def test_pruning_keeps_what_is_in_a_folder_that_cannot_be_listed() -> None:
    """A failure that names a folder stands for everything below it."""
    index = MemoryIndex()
    await _indexer(index).run(_parsed("a", "closed/b", "c"))
    items = [*_parsed("a"), ParseFailure("closed", "file:///docs/closed/", "permission denied")]
    await _indexer(index).run(items, roots=["file:///docs/"])
    assert sorted(index.documents) == ["a", "closed/b"]


async def test_pruning_a_file_leaves_its_neighbours() -> None:
    """A root that is a file stands for its own rows alone."""
    index = MemoryIndex()
    await _indexer(index).run(_parsed("r#1", "r#2", "rows#1"))
    await _indexer(index).run(_parsed("r#1"), roots=["file:///docs/r"])
    assert sorted(index.documents) == ["r#1", "rows#1"]


async def test_a_run_without_documents_removes_nothing() -> None:
    """A folder that is not mounted looks empty; the report says so."""
    index = MemoryIndex()
    await _indexer(index).run(_parsed("a", "b"))
    report = await _indexer(index).run([], roots=["file:///docs/"])
    assert len(index.documents) == 2
    assert "nothing was found there, so nothing was removed" in report.warnings[0].reason


async def test_a_run_stops_cleanly_when_the_store_fails() -> None:
    """The store's error comes through as it is, and no task is left behind."""

    class Broken(MemoryIndex):
        async def upsert(self, documents: Sequence[EncodedDocument], since: int | None = None) -> Epoch:
            raise IndexUnavailable("memory", "broken")

    before = asyncio.all_tasks()
    with pytest.raises(IndexUnavailable):
        await _indexer(Broken()).run(_parsed(*(f"d{number}" for number in range(500))))
    assert asyncio.all_tasks() == before


async def test_a_long_title_is_a_warning() -> None:
    """CHK-09: the document is written, its body embedded, and the report says what was cut."""
    index, encoder = MemoryIndex(), HashEncoder()
    item = ParsedDocument(Document("d", "long " * 2000, "Body BODY-3 text."))
    report = await _indexer(index, encoder).run([item])
    assert encoder.texts[0].endswith("\nBody BODY-3 text.")
    assert report.counts.written == 1
    assert "cut to 64 tokens" in report.warnings[0].reason
