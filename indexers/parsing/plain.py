"""Plain text: taken as it is; its form feeds separate pages."""

from __future__ import annotations

from indexers.parsing.charsets import decode
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document


def parse_plain(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a text file.

    Raises:
        ParseFailed: too large, or no text.
    """
    decoded, warnings = decode(read_bounded(file, options))
    text, cleaned = clean(decoded, keep_pages=True)
    require_text(text, file.name, options)
    return ParsedDocument(Document(file.name, file.stem, text, source_uri=file.uri), warnings + cleaned)
