"""Source code to canonical Markdown, by its syntax tree: classes and functions under headings of their names.

The file is cut at line ends, so that every line of it stands in the text once and in order, the comments above a
definition with it; a chunk's headings say which function it is from. tree-sitter (MIT) has grammars for all of these
languages behind one interface, and reads broken code as well. Without the extra `code`, and for languages that it has
no grammar for, the file is one block of code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from indexers.parsing.charsets import decode
from indexers.parsing.code_outline import Definition, definitions_of
from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document, TextFormat

_GRAMMARS: Mapping[str, tuple[str, str]] = {  # suffix to module and function; the language's name is after the last _
    ".py": ("tree_sitter_python", "language"),
    ".js": ("tree_sitter_javascript", "language"),
    ".mjs": ("tree_sitter_javascript", "language"),
    ".jsx": ("tree_sitter_javascript", "language"),
    ".ts": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".java": ("tree_sitter_java", "language"),
    ".go": ("tree_sitter_go", "language"),
    ".rs": ("tree_sitter_rust", "language"),
    ".c": ("tree_sitter_c", "language"),
    ".h": ("tree_sitter_c", "language"),
    ".cc": ("tree_sitter_cpp", "language"),
    ".cpp": ("tree_sitter_cpp", "language"),
    ".hpp": ("tree_sitter_cpp", "language"),
    ".cs": ("tree_sitter_c_sharp", "language"),
    ".rb": ("tree_sitter_ruby", "language"),
    ".php": ("tree_sitter_php", "language_php"),
    ".sh": ("tree_sitter_bash", "language"),
}
_PLAIN: Mapping[str, str] = {".kt": "kotlin", ".swift": "swift", ".scala": "scala", ".lua": "lua", ".sql": "sql"}
_CLOSING = re.compile(r"[\W_]*(?:(?:end|fi|done|esac)\b[\W_]*)?")  # nothing in such a line is worth a heading
CODE_SUFFIXES = frozenset({*_GRAMMARS, *_PLAIN})


def parse_code(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a file of source code; its title is its path.

    Raises:
        ParseFailed: too large, or without text.
    """
    source, decoded = decode(read_bounded(file, options))
    source, cleaned = clean(source)
    require_text(source, file.name, options)
    suffix = file.path.suffix.lower()
    language = _PLAIN.get(suffix) or _GRAMMARS[suffix][0].removeprefix("tree_sitter_").replace("_", "")
    root = _tree(source, suffix)
    text = code_markdown(
        source, language, definitions_of(root) if root is not None else (), PurePosixPath(file.name).name
    )
    document = Document(file.name, file.name, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, decoded + cleaned)


def code_markdown(source: str, language: str, definitions: Sequence[Definition], name: str) -> str:
    """Returns source code under headings of its definitions, every line of it once and in order."""
    outline = _Outline(source.split("\n"), language)
    outline.write(definitions, (0, len(outline.lines)), name, 1)
    return outline.writer.text()


class _Outline:
    """Writes lines: those of definitions under their headings, those between them as they stand."""

    def __init__(self, lines: list[str], language: str) -> None:
        self.lines = lines
        self.writer = MarkdownWriter()
        self._language = language

    def write(self, definitions: Sequence[Definition], span: tuple[int, int], name: str, level: int) -> None:
        """Writes a span of lines, which is called by a name where it goes on between and behind its definitions."""
        at, end = span
        for number, one in enumerate(definitions):
            self._between(at, one.start, name if number else "", level)
            self.writer.heading(level, one.heading)
            following = definitions[number + 1].start if number + 1 < len(definitions) else end
            at = self._with_brackets(one.end, following)
            if one.inner:
                self.write(one.inner, (one.start, at), one.heading, level + 1)
            else:
                self._code(one.start, at)
        self._between(at, end, name if definitions else "", level)

    def _between(self, start: int, end: int, name: str, level: int) -> None:
        """Writes lines that are of no definition; the heading says that the one before them has ended."""
        if name and any(line.strip() for line in self.lines[start:end]):
            self.writer.heading(max(level - 1, 1), name)
        self._code(start, end)

    def _with_brackets(self, start: int, end: int) -> int:
        """Returns the line after a definition and what only closes it or what it is in."""
        while start < end and _CLOSING.fullmatch(self.lines[start]):
            start += 1
        return start

    def _code(self, start: int, end: int) -> None:
        self.writer.code("\n".join(self.lines[start:end]), self._language)


def _tree(source: str, suffix: str) -> Any:
    """Returns the root of the syntax tree; None where no grammar is installed."""
    if suffix not in _GRAMMARS:
        return None
    module, function = _GRAMMARS[suffix]
    try:
        from tree_sitter import Language, Parser  # noqa: PLC0415 - of the extra `code`

        language = Language(getattr(import_module(module), function)())
    except ImportError:
        return None
    return Parser(language).parse(source.encode()).root_node
