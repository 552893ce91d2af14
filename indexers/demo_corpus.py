"""Real documents that every CPython carries: the language reference, and the docstrings of the standard library.

The reference is what `help("with")` shows. The docstrings are read from the source files, which are parsed and never
imported, since some modules do things when they are imported. Both are there without any download.
"""

from __future__ import annotations

import ast
import inspect
import platform
import pydoc_data.topics
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document, FieldType, TextFormat

DEMO_FIELDS = {"kind": FieldType.KEYWORD, "module": FieldType.KEYWORD, "python_version": FieldType.KEYWORD}

_SHORTEST = 180  # characters of a docstring that says something of its own
_LEFT_OUT = frozenset(
    {"test", "tests", "idlelib", "lib2to3", "distutils", "ensurepip", "turtledemo", "pydoc_data", "encodings"}
    | {"site-packages", "dist-packages", "lib-dynload", "__pycache__", "_pyrepl"}
)
_UNDERLINED = re.compile(r"^(?P<title>\S.*)\n(?P<line>([*=~^\"-])\3{2,})[ \t]*$", re.MULTILINE)
_LEVELS = '*=-~^"'
_BLOCK_MARK = re.compile(r"^(?= {0,3}(?:#{1,6}\s|=+\s*$|-+\s*$|```|~~~))", re.MULTILINE)

_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def demo_documents(library: Path | None = None) -> Iterator[ParsedDocument]:
    """Yields one document a topic of the reference and one a module, about 3,000 chunks in all, in a stable order.

    `library` is the folder of the standard library's sources; None is that of the running Python.
    """
    for topic, text in sorted(pydoc_data.topics.topics.items()):
        yield ParsedDocument(_topic_document(topic, text))
    root = library or Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if not any(part in _LEFT_OUT or part.startswith(("_", "config-")) for part in parts[:-1]):
            document = _module_document(path, _module_name(parts))
            if document is not None:
                yield ParsedDocument(document)


def _topic_document(topic: str, text: str) -> Document:
    found = _UNDERLINED.search(text)
    title = found["title"] if found else topic
    metadata = {"kind": "reference", "python_version": _version()}
    markdown = _UNDERLINED.sub(_heading, text).strip() + "\n"
    return Document(f"reference/{topic}", title, markdown, TextFormat.MARKDOWN, metadata, f"pydoc:{topic}")


def _heading(match: re.Match[str]) -> str:
    return f"{'#' * (_LEVELS.index(match['line'][0]) + 1)} {match['title']}"


def _module_name(parts: tuple[str, ...]) -> str:
    names = [*parts[:-1], parts[-1].removesuffix(".py")]
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def _module_document(path: Path, module: str) -> Document | None:
    """Returns the docstrings of a module as one document; None when they say too little or it does not parse."""
    if module.rpartition(".")[2].startswith("_") and module != "__future__":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in old sources
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    sections = list(_sections(tree, module, 1))
    if not sections:
        return None
    metadata = {"kind": "library", "module": module, "python_version": _version()}
    text = f"# {module}\n\n" + "\n\n".join(sections) + "\n"
    return Document(f"library/{module}", module, text, TextFormat.MARKDOWN, metadata, f"pydoc:{module}")


def _sections(node: ast.Module | _Definition, name: str, level: int) -> Iterator[str]:
    """Yields the node's docstring under its heading, and those of the public classes and functions in it."""
    docstring = inspect.cleandoc(ast.get_docstring(node, clean=False) or "")
    if len(docstring) >= _SHORTEST:
        # Indented, a line of dashes or a hash sign opens no Markdown block.
        body = _BLOCK_MARK.sub("    ", docstring)
        yield body if isinstance(node, ast.Module) else f"{'#' * level} {name}\n\n{_signature(node)}{body}"
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for child in node.body:
            if isinstance(child, _Definition) and not child.name.startswith("_"):
                yield from _sections(child, f"{name}.{child.name}", min(level + 1, 3))


def _signature(node: _Definition) -> str:
    if isinstance(node, ast.ClassDef):
        return ""
    return f"`{node.name}({ast.unparse(node.args)})`\n\n"


def _version() -> str:
    return ".".join(platform.python_version_tuple()[:2])
