"""The values that cross the write side: documents, chunks, schemas, searches and what they find.

All of them are immutable. A chunk's text is always `document.text[start:end]`, in code points.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from encoders.types import SparseVector, TermCounts

Scalar: TypeAlias = str | int | float | bool | datetime  # datetimes are timezone-aware, UTC
Metadata: TypeAlias = Mapping[str, Scalar | tuple[Scalar, ...]]


class FieldType(enum.Enum):
    """The declared type of a metadata field; filters and values are coerced to it or refused."""

    KEYWORD = "keyword"
    INTEGER = "integer"
    FLOAT = "float"
    BOOL = "bool"
    DATETIME = "datetime"
    TEXT = "text"


class TextFormat(enum.Enum):
    """How a canonical text shows its structure. Form feeds separate the pages of a paged document in both."""

    PLAIN = "plain"
    MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True, order=True)
class CollectionKey:
    """Names a collection. There is no way to data without one, and the tenant in it comes from the credential."""

    tenant: str
    collection: str


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """Says which state of a collection was read: the index files, and the last acknowledged write."""

    generation: int
    write_sequence: int


@dataclass(frozen=True, slots=True)
class CollectionDefinition:
    """What a collection promises: its declared fields and the model whose vectors it holds."""

    key: CollectionKey
    fields: Mapping[str, FieldType]
    description: str
    dense_model_id: str
    dense_revision: str
    dim: int
    created_at: datetime
    code_bytes: int = 0  # of a token's code; 0 when the collection stores no token vectors
    sparse_model_id: str = ""  # of the learned term weights; empty for BM25
    sparse_revision: str = ""
    dense_source: str = ""  # how the model's files are named; empty for the configured model


@dataclass(frozen=True, slots=True)
class Note:
    """Text that is searched along with a span of a document, but never shown or cited: what a model said of it."""

    start: int  # code points into the canonical text
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is stored and returned: its canonical text is what every offset points into."""

    document_id: str
    title: str
    text: str
    format: TextFormat = TextFormat.PLAIN
    metadata: Metadata = field(default_factory=dict)
    source_uri: str = ""
    owner: str = ""  # the job that keeps it in step with its source; empty when a caller wrote it
    notes: tuple[Note, ...] = ()  # each goes with the chunk in which its span begins


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the index holds of a document, as far as it is needed to tell whether that is what it should be."""

    fingerprint: str
    owner: str
    chunk_count: int
    write_sequence: int  # of the write that it came with


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document that is embedded, found and cited as one."""

    chunk_id: str  # canonical lower-case UUID made of document id, content and occurrence
    ordinal: int  # position in the document, from 0
    start: int  # code points into the canonical text
    end: int
    heading_path: tuple[str, ...]
    page: int  # from 1; 0 when the document has no pages
    text: str  # document.text[start:end]
    token_count: int  # of the text alone, as the dense encoder's tokenizer counts
    header: str  # title and headings as they are embedded before the text, in one line; may be empty
    header_token_count: int  # of the header alone
    notes: str = ""  # searched along with the text, after it; never shown or cited

    @property
    def embedding_text(self) -> str:
        """What is embedded and counted for BM25."""
        text = headed(self.header, self.text)
        return f"{text}\n{self.notes}" if self.notes else text


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """A chunk with what the branches search by."""

    chunk: Chunk
    dense: NDArray[np.float32]  # [dim], unit length
    terms: TermCounts
    codes: NDArray[np.uint8] | None = None  # [tokens, code_bytes], as the encoder's codec makes them; None without one


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document ready to be written; replaces whatever the collection holds under the same id, atomically."""

    document: Document
    fingerprint: str  # changes when the text, title, metadata or anything that shapes chunks or vectors changes
    chunks: tuple[EncodedChunk, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it is served: enough to show, cite, filter and rerank it."""

    chunk_id: str
    document_id: str
    title: str
    heading_path: tuple[str, ...]
    text: str
    start: int
    end: int
    ordinal: int
    page: int
    metadata: Metadata
    source_uri: str = ""
    token_count: int = 0  # of the text alone, as the dense encoder's tokenizer counts; 0 when that is not known
    header: str = ""  # title and headings as they were embedded; empty when there are none or it is not known
    header_token_count: int = 0  # of the header alone
    row: int = 0  # the index's own number of the chunk; 0 when it goes by ids

    @property
    def embedding_text(self) -> str:
        """What was embedded, and what a reranker reads."""
        return headed(self.header, self.text)


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document without its text, as lists show it."""

    document_id: str
    title: str
    metadata: Metadata
    fingerprint: str
    chunk_count: int
    text_length: int  # code points
    source_uri: str
    indexed_at: datetime


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """One page of a listing; an empty `next_page_token` means the end."""

    documents: tuple[DocumentSummary, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did: the state that holds it, and the documents that it left alone."""

    epoch: Epoch
    superseded: frozenset[str] = frozenset()  # written or deleted by somebody else after `since`


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a collection holds."""

    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """What the branches of one search found, with every branch's raw score for every candidate.

    A score that a branch did not return by itself was computed from the stored vector, so it is never a made-up zero.
    Candidates are in no particular order; `fuse` gives them one.
    """

    chunk_ids: tuple[str, ...]
    dense_scores: NDArray[np.float32]  # [n], cosine; NaN when the dense branch was not asked
    sparse_scores: NDArray[np.float32]  # [n], dot product of term weights; NaN when the sparse branch was not asked
    dense_ranks: NDArray[np.int32]  # [n], from 0; -1 when the dense branch did not return it
    sparse_ranks: NDArray[np.int32]  # [n], from 0; -1 when the sparse branch did not return it


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One search over both branches; a branch that is None is not asked."""

    dense: NDArray[np.float32] | None  # [dim], unit length
    sparse: SparseVector | None  # query side: IDF weights from `Index.statistics`, or learned ones
    limit: int  # candidates a branch
    exact: bool = False  # brute force instead of the approximate graph, for measuring recall


def headed(header: str, text: str) -> str:
    """Returns the header, a line feed and the text; without a header the text alone."""
    return f"{header}\n{text}" if header else text
