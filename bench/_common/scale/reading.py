"""What parsing in the sandbox and chunking take, on one thread."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench._common.engines import Encoders
from bench._common.scale.costs import Reading
from encoders.terms import count_terms
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument
from indexers.sandbox.pool import ParserPool, SandboxLimits
from indexers.types import Document

_FILES = 300


def measure_reading(folder: Path, documents: Sequence[Document], encoders: Encoders) -> Reading:
    """Writes the documents as rows of one file and as files of their own, and reads them back."""
    rows, files = folder / "rows.jsonl", [folder / f"{number}.txt" for number in range(_FILES)]
    lines = (json.dumps({"id": one.document_id, "title": one.title, "text": one.text}) for one in documents)
    rows.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for path, document in zip(files, documents, strict=False):
        path.write_text(document.text, encoding="utf-8")
    parsers = ParserPool(SandboxLimits())
    try:
        parsers.warm()
        of_rows = _ms(lambda: _parsed(parsers, [rows]), len(documents))
        of_files = _ms(lambda: _parsed(parsers, files), len(files))
    finally:
        parsers.close()
    chunks = 0

    def cut() -> int:
        nonlocal chunks
        for document in documents:
            made = encoders.chunker.chunk(document)
            chunks += len([count_terms(one.embedding_text) for one in made])
        return len(documents)

    cut_ms = _ms(cut, len(documents))
    characters = sum(len(one.text) for one in documents) / len(documents)
    return Reading(characters, chunks / len(documents), of_rows, of_files, cut_ms)


def _parsed(parsers: ParserPool, paths: Sequence[Path]) -> int:
    return sum(
        isinstance(one, ParsedDocument)
        for path in paths
        for one in parsers.parse(SourceFile(path, path.name, path.as_uri()), ParseOptions())
    )


def _ms(work: Callable[[], int], expected: int) -> float:
    """Returns milliseconds a document.

    Raises:
        SystemExit: not every document came out.
    """
    started = time.perf_counter()
    came = work()
    seconds = time.perf_counter() - started
    if came < expected * 0.99:  # an empty text is no document
        raise SystemExit(f"only {came} of {expected} documents could be read")
    return seconds * 1e3 / came
