"""Cuts whole corpora and checks every chunk against its document: exact offsets, and no visible character lost.

Each document goes through the parser that a job would use, and its chunks are compared with the text that they point
into. Documents whose canonical text differs from the field of the row that it was read from (line ends, NUL, lone
surrogates) are counted too, since an offset into the one is none into the other.

    python -m bench.offsets SETS/*/ SETS/docs-100k.jsonl.gz --sample 5000 --json bench/results/offsets.json

Sets in BEIR's layout and lines of JSON (packed or not) are read line by line; other files and folders as a job does.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table, say
from encoders.sources import ModelSource, locate
from encoders.tokenizing import Tokenization
from indexers.chunking import Chunker, ChunkLimits
from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.types import Chunk, Document

_MODEL = "bundled:minilm-l6"
_MAX_TOKENS = 256
_NAMED = 5  # faults of each set


@dataclass(frozen=True, slots=True)
class Checked:
    """What a set came to; everything below `failures` must be 0."""

    name: str
    documents: int = 0
    characters: int = 0
    chunks: int = 0
    seconds: float = 0.0
    failures: int = 0  # rows or files that gave no document
    altered: int = 0  # documents whose canonical text is not the field it was read from
    wrong_offsets: int = 0  # chunks whose text is not that of their span
    lost: int = 0  # visible ones that no chunk holds
    faults: tuple[str, ...] = ()  # the first documents that have any


def main() -> None:
    """Runs the tool; the exit status is 1 when an offset is wrong or a character is lost."""
    arguments = _arguments()
    tokens = Tokenization.open(locate(ModelSource(_MODEL)) / "tokenizer.json", _MODEL, _MAX_TOKENS)
    chunker = Chunker(tokens, ChunkLimits(arguments.limit_tokens))
    results: list[Checked] = []
    for path in (path.resolve() for path in arguments.paths):
        results.append(check(path, arguments.sample if path.suffix == ".gz" else 0, chunker))
        say(f"{results[-1].name}: {results[-1].documents:,} documents in {results[-1].seconds:.0f} s")
    _print(results)
    if arguments.json:
        write_results(arguments.json, {"sets": [plain(one) for one in results]}, None)
    if any(one.wrong_offsets or one.lost for one in results):
        raise SystemExit(1)


def check(path: Path, sample: int, chunker: Chunker) -> Checked:
    """Checks the documents of a file or folder; 0 takes all of them."""
    started = time.monotonic()
    name, corpus = path.name, path / "corpus.jsonl"
    path = corpus if corpus.is_file() else path
    documents = characters = chunk_count = failures = altered = wrong = lost = 0
    faults: list[str] = []
    for document, source in _documents(path, sample):
        if document is None:
            failures += 1
            continue
        chunks = chunker.chunk(document)
        here = wrong_offsets(document, chunks), lost_characters(document, chunks)
        wrong, lost = wrong + here[0], lost + here[1]
        faults += [document.document_id] if any(here) and len(faults) < _NAMED else []
        altered += source is not None and source != document.text
        documents, characters, chunk_count = documents + 1, characters + len(document.text), chunk_count + len(chunks)
    seconds = time.monotonic() - started
    return Checked(
        name, documents, characters, chunk_count, seconds, failures, altered, wrong, lost, faults=tuple(faults)
    )


def wrong_offsets(document: Document, chunks: Sequence[Chunk]) -> int:
    """Counts the chunks whose text is not what stands at their offsets."""
    return sum(document.text[chunk.start : chunk.end] != chunk.text for chunk in chunks)


def lost_characters(document: Document, chunks: Sequence[Chunk]) -> int:
    """Counts the visible characters of a document that no chunk holds; chunks are in order of their starts."""
    lost = position = 0
    for chunk in chunks:
        lost += _visible(document.text[position : chunk.start])
        position = max(position, chunk.end)
    return lost + _visible(document.text[position:])


def _visible(text: str) -> int:
    return len("".join(text.split()))


def _documents(path: Path, sample: int) -> Iterator[tuple[Document | None, str | None]]:
    """Yields documents, each with the text of its source where that is a field; None for one that failed."""
    found = _row_documents(path) if path.name.endswith((".jsonl", ".jsonl.gz")) else _file_documents(path)
    return islice(found, sample or None)


def _row_documents(path: Path) -> Iterator[tuple[Document | None, str | None]]:
    with _unpacked(path) as lines, tempfile.TemporaryDirectory() as folder:
        one = Path(folder, "row.jsonl")  # the parser reads files, and this keeps memory flat
        for line in lines:
            if line.strip():
                one.write_bytes(line)
                yield from ((found, str(json.loads(line).get("text", ""))) for found in _parsed(one, path.name))


def _unpacked(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _file_documents(path: Path) -> Iterator[tuple[Document | None, str | None]]:
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    for one in files:
        yield from ((found, None) for found in _parsed(one, one.name if one is path else str(one.relative_to(path))))


def _parsed(file: Path, name: str) -> Iterator[Document | None]:
    for item in parse_file(SourceFile(file, name, file.as_uri())):
        if isinstance(item, ParsedDocument):
            yield item.document
        elif isinstance(item, ParseFailure):
            yield None


def _print(results: Sequence[Checked]) -> None:
    columns = ["set", "documents", "characters", "chunks", "failed", "altered", "wrong", "lost"]
    rows: list[list[Cell]] = [
        [
            *(one.name, one.documents, one.characters, one.chunks),
            *(one.failures, one.altered, one.wrong_offsets, one.lost),
        ]
        for one in results
    ]
    print_table("Chunks against their documents", columns, rows)
    for one in results:
        for fault in one.faults:
            say(f"{one.name}: {fault}")


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    made.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="sets, lines of JSON, other files or folders")
    made.add_argument("--sample", type=int, default=0, metavar="N", help="documents of a packed file at most; 0 is all")
    made.add_argument("--limit-tokens", type=int, default=_MAX_TOKENS, metavar="N", help="tokens of a chunk at most")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results here")
    return made.parse_args()


if __name__ == "__main__":
    main()
