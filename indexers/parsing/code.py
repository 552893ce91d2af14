"""Source code to canonical Markdown, by its syntax tree: classes and functions under headings of their names.

What stands between them is kept in place, so nothing of the file is lost; a chunk's headings say which function it is
from. tree-sitter (MIT) has grammars for all of these languages behind one interface, and reads broken code as well.
Without the extra `code`, and for languages that it has no grammar for, the file is one block of code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from indexers.parsing.charsets import decode
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
CODE_SUFFIXES = frozenset({*_GRAMMARS, *_PLAIN})

_NAMED = ("function", "method", "class", "interface", "struct", "impl", "trait", "enum", "module", "namespace")
_MAX_DEPTH = 6  # of definitions inside definitions
_SMALLEST = 400  # characters, below which a definition is not taken apart


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
    writer, root = MarkdownWriter(), _tree(source, suffix)
    if root is None:
        writer.code(source, language)
    else:
        _Outline(writer, source.encode(), language).write(root)
    document = Document(file.name, file.name, writer.text(), TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, decoded + cleaned)


class _Outline:
    """Writes a tree: definitions under headings, the code between them as it stands."""

    def __init__(self, writer: MarkdownWriter, source: bytes, language: str) -> None:
        self._writer = writer
        self._source = source
        self._language = language

    def write(self, root: Any) -> None:
        """Writes the whole file."""
        self._parts(root.start_byte, len(self._source), list(_definitions(root)), 1)

    def _parts(self, start: int, end: int, definitions: list[Any], level: int) -> None:
        at = start
        for node in definitions:
            self._code(at, node.start_byte)
            self._writer.heading(level, f"{node.type.split('_')[0]} {_name(node)}".strip())
            inner = list(_definitions(node)) if level < _MAX_DEPTH else []
            if inner and node.end_byte - node.start_byte > _SMALLEST:
                self._parts(node.start_byte, node.end_byte, inner, level + 1)
            else:
                self._code(node.start_byte, node.end_byte)
            at = node.end_byte
        self._code(at, end)

    def _code(self, start: int, end: int) -> None:
        self._writer.code(self._source[start:end].decode("utf-8", "replace"), self._language)


def _definitions(root: Any) -> Iterator[Any]:
    """Yields the outermost definitions below a node, in order; a decorated one with its decorators."""
    waiting = [iter(root.children)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
        elif _is_definition(node):
            yield node
        elif len(waiting) < 200:
            waiting.append(iter(node.children))


def _is_definition(node: Any) -> bool:
    if node.type == "decorated_definition":
        return True
    return bool(node.is_named and any(word in node.type for word in _NAMED) and _name(node))


def _name(node: Any) -> str:
    if node.type == "decorated_definition":
        node = node.child_by_field_name("definition") or node
    found = (
        node.child_by_field_name("name") or node.child_by_field_name("declarator") or node.child_by_field_name("type")
    )
    text = found.text.decode("utf-8", "replace") if found is not None and found.text else ""
    return " ".join(text.split())[:120]


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
