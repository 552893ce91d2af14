"""Notebooks (Jupyter) to canonical Markdown: text cells as they are, code cells fenced, textual outputs behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from indexers.errors import ParseFailed
from indexers.parsing.charsets import decode
from indexers.parsing.markdown import first_heading
from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document, TextFormat

_OUTPUT_CHARACTERS = 2_000  # of a cell
_PICTURE = re.compile(r"\bdata:[\w/+.;=-]{1,100};base64,[\w+/=]+")
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)


def parse_notebook(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a notebook of format 3 or 4.

    Raises:
        ParseFailed: too large, no notebook, or without text.
    """
    source, decoded = decode(read_bounded(file, options))
    try:
        notebook = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise ParseFailed(file.name, f"is no notebook: {str(error)[:200]}") from error
    cells = list(_cells(notebook)) if isinstance(notebook, dict) else []
    if not cells:
        raise ParseFailed(file.name, "is no notebook: it has no cells", "wrong_type")
    language = _language(notebook)
    text, cleaned = clean("\n".join(part for cell in cells for part in _parts(cell, language)))
    require_text(text, file.name, options)
    title = first_heading(text) or file.stem
    document = Document(file.name, title, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, decoded + cleaned)


def _cells(notebook: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    sheets = notebook.get("worksheets")
    groups = [one.get("cells") for one in sheets if isinstance(one, dict)] if isinstance(sheets, list) else []
    for cells in [notebook.get("cells"), *groups]:
        yield from (cell for cell in cells if isinstance(cell, dict)) if isinstance(cells, list) else ()


def _parts(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input", "")))
    kind = cell.get("cell_type")
    if kind != "code":
        yield _closed(_PICTURE.sub("", source))
        return
    writer = MarkdownWriter()
    writer.code(source, language)
    outputs = cell.get("outputs")
    shown = "\n".join(_output(one) for one in outputs if isinstance(one, dict)) if isinstance(outputs, list) else ""
    writer.code(shown[:_OUTPUT_CHARACTERS], "text")
    yield writer.text()


def _closed(source: str) -> str:
    """Returns a cell of text that ends by itself: a fence that it leaves open would swallow the cells below."""
    fences = _FENCE.findall(source)
    return f"{source}\n{fences[-1]}\n" if len(fences) % 2 else f"{source}\n"


def _output(output: Mapping[str, Any]) -> str:
    """Returns what an output says as text; pictures say nothing, of errors the last line does."""
    if output.get("output_type") in ("error", "pyerr"):
        return f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    found = output.get("data")
    plain = found.get("text/plain", "") if isinstance(found, dict) else output.get("text", "")
    return _COLOURS.sub("", _joined(plain))


def _language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    for part, key in (("kernelspec", "language"), ("language_info", "name")):
        spec = metadata.get(part) if isinstance(metadata, dict) else None
        language = spec.get(key) if isinstance(spec, dict) else None
        if isinstance(language, str) and language.isalnum():
            return language
    return ""


def _joined(source: object) -> str:
    if isinstance(source, list):
        return "".join(one for one in source if isinstance(one, str))
    return source if isinstance(source, str) else ""
