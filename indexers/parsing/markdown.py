"""Markdown: taken as it is, since it is the canonical form; only its title is looked for."""

from __future__ import annotations

import re

from indexers.chunking.blocks import find_blocks, front_matter_end
from indexers.parsing.charsets import decode
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document, TextFormat

_TITLE = re.compile(r"^title:[ \t]*(\S.*)$", re.MULTILINE)


def parse_markdown(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a Markdown file; its title is that of the front matter, or its first heading.

    Raises:
        ParseFailed: too large, or no text.
    """
    decoded, warnings = decode(read_bounded(file, options))
    text, cleaned = clean(decoded)
    require_text(text, file.name, options)
    title = _front_title(text) or first_heading(text) or file.stem
    document = Document(file.name, title, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, warnings + cleaned)


def first_heading(text: str) -> str:
    """Returns the first heading of a Markdown text; empty when it has none."""
    return next((block.heading_path[0] for block in find_blocks(text, TextFormat.MARKDOWN) if block.heading_path), "")


def _front_title(text: str) -> str:
    found = _TITLE.search(text, 0, front_matter_end(text))
    return found[1].strip().strip("\"'").strip() if found else ""
