"""reStructuredText to canonical Markdown, through docutils' parser, its file and raw access shut.

Documents are mostly written for Sphinx, whose directives and roles docutils does not know. Nothing of them is lost: a
role becomes its text, and the content of a directive is parsed in its place, below its argument. No transforms run,
since they resolve what only a whole project can, and complain of the rest.
"""

from __future__ import annotations

import re
from optparse import Values

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document

from indexers.parsing.charsets import decode
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.parsing.rst_writer import RstWriter
from indexers.types import Document, TextFormat

_LONGEST_BLOCK = 20_000  # characters; docutils takes quadratic time in the inline markup of one block
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def parse_rst(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a reStructuredText file; its title is its first section's. What is too odd to parse is read as plain text.

    Raises:
        ParseFailed: too large, or no text.
    """
    decoded, warnings = decode(read_bounded(file, options))
    source, cleaned = clean(decoded)
    warnings += cleaned
    title, text, text_format = "", source, TextFormat.PLAIN
    if any(len(block) > _LONGEST_BLOCK for block in _BLANK_LINE.split(source)):
        warnings += (f"has more than {_LONGEST_BLOCK} characters without a blank line; read as plain text",)
    else:
        try:
            title, text = render_rst(source)
            text_format = TextFormat.MARKDOWN
        except RecursionError:
            warnings += ("nests too deep; read as plain text",)
    require_text(text, file.name, options)
    return ParsedDocument(Document(file.name, title or file.stem, text, text_format, source_uri=file.uri), warnings)


def render_rst(source: str) -> tuple[str, str]:
    """Returns the title, which may be empty, and the canonical Markdown of a reStructuredText source.

    Raises:
        RecursionError: the source nests deeper than Python's stack.
    """
    settings = _safe_settings(len(source))

    def parse(part: str) -> nodes.document:
        tree = new_document("<source>", settings)
        Parser().parse(part, tree)
        return tree

    writer = RstWriter(parse)
    writer.write(parse(source))
    return writer.first_title, writer.markdown.text()


def _safe_settings(longest_line: int) -> Values:
    """Returns settings that read no other file and say no word on the terminal."""
    settings = get_default_settings(Parser)
    settings.file_insertion_enabled = False
    settings.raw_enabled = False
    settings.report_level = 5
    settings.halt_level = 5
    settings.warning_stream = False
    settings.syntax_highlight = "none"
    settings.line_length_limit = longest_line + 1
    return settings
