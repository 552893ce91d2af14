"""The unit costs that `bench.scale` measures: plain numbers with their units in their names; bytes are means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoder, and how long its input is."""

    dim: int
    token_dim: int  # numbers of a token vector
    token_code_bytes: int  # that the embedded store keeps of one
    cores: int
    tokens_a_chunk: float
    token_vectors_a_chunk: float
    bare_one_tokens_per_s: float  # the ONNX session on one thread, the others idle
    bare_all_tokens_per_s: float  # on a thread a core
    indexer_tokens_per_s: float  # documents in, durable chunks out, on all cores
    opening_s: float  # of the encoder, with its check

    @property
    def core_tokens_per_s(self) -> float:
        """What a core gives when all are busy."""
        return self.bare_all_tokens_per_s / self.cores


@dataclass(frozen=True, slots=True)
class Reading:
    """The way from a source to chunks, on one thread."""

    characters_a_document: float
    chunks_a_document: float
    parse_row_ms: float  # a document that is a row of a file, in the sandbox
    parse_file_ms: float  # one that is a file
    chunk_ms: float  # a document: cutting it and counting its words


@dataclass(frozen=True, slots=True)
class Record:
    """Bytes a chunk of the record; the parts are contents, the file is what the disk holds."""

    text_bytes: float  # of whole documents
    chunk_bytes: float  # texts and headers of chunks
    metadata_bytes: float
    vector_bytes: float
    term_bytes: float
    code_bytes: float
    terms: float  # distinct ones a chunk
    file_bytes: float


@dataclass(frozen=True, slots=True)
class Served:
    """A collection in a process that has only opened it and searched."""

    open_ms: float
    own_bytes: int  # anonymous memory beyond that of the process before it opened the collection
    mapped_bytes: int  # resident pages of files, likewise
    dense_p50_ms: float
    sparse_p50_ms: float
    both_p50_ms: float


@dataclass(frozen=True, slots=True)
class Size:
    """One size of the collection."""

    chunks: int
    documents: int
    build_s: float
    build_peak_bytes: int  # anonymous memory of the building process
    generation_bytes: int
    graph_bytes: int  # files of the HNSW graph alone
    distinct_terms: int
    graph: Served
    exact: Served


@dataclass(frozen=True, slots=True)
class Driver:
    """What only the driver of a run over a cluster does, milliseconds a document, into an embedded collection."""

    documents: int
    new_ms: float  # unpacked, compared, written, proven, recorded in the queue
    unchanged_ms: float
    queue_bytes: float  # of the queue's file, a document that is an item of its own
    handed_bytes: float  # pickled, a document


@dataclass(frozen=True, slots=True)
class Wire:
    """The client's own work for a chunk on a Qdrant server; the server's and the network's time are not in it."""

    write_ms: float
    bare_write_ms: float  # without token vectors
    read_ms: float
    message_bytes: float
    payload_bytes: float
    document_bytes: float  # a document's own point


@dataclass(frozen=True, slots=True)
class Remembered:
    """Bytes a document that one process holds for a whole run."""

    seen_ids: float
    fingerprints: float
    seen_sources: float
    signatures: float
    term_counts: float  # a chunk, while a server's generation is weighed anew


@dataclass(frozen=True, slots=True)
class Costs:
    """Everything that was measured."""

    encoding: Encoding
    reading: Reading
    record: Record
    sizes: tuple[Size, ...]
    further: tuple[Size, ...]  # larger ones, of which only the first 48 tokens were embedded; without token codes
    driver: Driver
    wire: Wire
    remembered: Remembered
    load_average: float  # over the last minute when it began: above about 0.5 the machine was not quiet


def costs_of(content: Mapping[str, Any]) -> Costs:
    """Reads what the results file holds.

    Raises:
        KeyError, TypeError: it is of another version of the tool.
    """
    return Costs(
        encoding=Encoding(**content["encoding"]),
        reading=Reading(**content["reading"]),
        record=Record(**content["record"]),
        sizes=tuple(map(_size, content["sizes"])),
        further=tuple(map(_size, content["further"])),
        driver=Driver(**content["driver"]),
        wire=Wire(**content["wire"]),
        remembered=Remembered(**content["remembered"]),
        load_average=content["load_average"],
    )


def _size(content: Mapping[str, Any]) -> Size:
    return Size(**{**content, "graph": Served(**content["graph"]), "exact": Served(**content["exact"])})
