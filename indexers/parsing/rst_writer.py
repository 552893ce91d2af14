"""Writes docutils' tree as canonical Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent

from docutils import nodes

from indexers.parsing.markdown_writer import MarkdownWriter

_DEEPEST = 12  # directives inside each other whose content is parsed; below, it is kept as it stands
_DIRECTIVE = re.compile(r"\.\.[ \t]+([\w:.+-]+?)::[ \t]*(.*)", re.DOTALL)
_OPTION = re.compile(r"[ \t]+:[\w-]+:([ \t].*)?$")
_ROLE = re.compile(r"(?::[\w:.+-]+:)?`([^`]*)`(?::[\w:.+-]+:)?")
_TARGET = re.compile(r"\s*<[^<>]*>$")
_CODE_DIRECTIVES = frozenset({"code", "code-block", "sourcecode", "highlight", "parsed-literal", "doctest", "testcode"})
# Their content is instructions to Sphinx, not text for readers.
_INSTRUCTIONS = frozenset(
    {"toctree", "index", "highlight", "module", "currentmodule", "py:module", "py:currentmodule", "tabularcolumns"}
    | {"sectionauthor", "codeauthor", "literalinclude", "default-domain", "testsetup", "testcleanup", "program"}
    | {"include", "raw"}
)
# The argument of these is text; that of others is a signature, an option, a name.
_TEXT_ARGUMENTS = frozenset(
    {"versionadded", "versionchanged", "versionremoved", "deprecated", "deprecated-removed", "seealso", "todo"}
    | {"centered", "soft-deprecated", "impl-detail", "tab-item", "dropdown", "details", "card"}
)
_UNSEEN = (nodes.comment, nodes.target, nodes.substitution_definition, nodes.pending, nodes.raw, nodes.image)


class RstWriter:
    """Walks a tree. It recurses as the source nests, which docutils' own parser bounds."""

    def __init__(self, parse: Callable[[str], nodes.document]) -> None:
        self.markdown = MarkdownWriter()
        self.first_title = ""
        self._parse = parse
        self._level = 0
        self._directives = 0
        self._substitutions: dict[str, str] = {}

    def write(self, tree: nodes.document) -> None:
        """Writes a whole tree, or one that was parsed out of a directive."""
        self._substitutions.update({name: node.astext() for name, node in tree.substitution_defs.items()})
        self._children(tree)

    def _children(self, node: nodes.Element) -> None:
        for child in node.children:
            if isinstance(child, nodes.Element) and not isinstance(child, _UNSEEN):
                self._block(child)

    def _block(self, node: nodes.Element) -> None:
        if isinstance(node, nodes.section):
            self._level += 1
            self._children(node)
            self._level -= 1
        elif isinstance(node, nodes.title | nodes.subtitle | nodes.rubric):
            self._title(node)
        elif isinstance(node, nodes.literal_block | nodes.doctest_block | nodes.math_block):
            self._code(node)
        elif isinstance(node, nodes.table):
            self._table(node)
        elif isinstance(node, nodes.bullet_list | nodes.enumerated_list):
            self._list(node)
        elif isinstance(node, nodes.system_message):
            self._unknown(node)
        elif isinstance(node, nodes.transition):
            self.markdown.rule()
        elif isinstance(node, nodes.line_block):
            self.markdown.paragraph(self._lines(node))
        elif isinstance(node, nodes.TextElement):
            self.markdown.paragraph(self._inline(node))
        else:
            self._children(node)

    def _title(self, node: nodes.Element) -> None:
        text = " ".join(self._inline(node).split())
        if isinstance(node.parent, nodes.section):
            self.first_title = self.first_title or text.replace("`", "")
            self.markdown.heading(self._level, text)
        else:
            self.markdown.paragraph(f"**{text}**")

    def _code(self, node: nodes.Element) -> None:
        classes = [name for name in map(str, node.get("classes", [])) if name != "code"]
        self.markdown.code(node.astext(), classes[0] if classes else "")

    def _list(self, node: nodes.Element) -> None:
        start = node.get("start", 1)
        for number, item in enumerate(node.children, start):
            self.markdown.open_item(f"{number}." if isinstance(node, nodes.enumerated_list) else "-")
            if isinstance(item, nodes.Element):
                self._children(item)
            self.markdown.close_item()
        self.markdown.close_list()

    def _table(self, node: nodes.Element) -> None:
        for title in node.findall(nodes.title):
            self.markdown.paragraph(self._inline(title))
        rows = [
            [" ".join(self._cell(entry).split()) for entry in row.children if isinstance(entry, nodes.Element)]
            for row in node.findall(nodes.row)
        ]
        self.markdown.table(rows)

    def _cell(self, entry: nodes.Element) -> str:
        return " ".join(
            self._inline(child) if isinstance(child, nodes.TextElement) else child.astext()
            for child in entry.children
            if isinstance(child, nodes.Element)
        )

    def _lines(self, node: nodes.Element) -> str:
        parts = [
            self._lines(child) if isinstance(child, nodes.line_block) else self._inline(child)
            for child in node.children
            if isinstance(child, nodes.Element)
        ]
        return "\n".join(parts)

    def _inline(self, node: nodes.Element) -> str:
        return "".join(self._piece(child) for child in node.children)

    def _piece(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.Text):
            return node.astext()
        if isinstance(node, nodes.problematic):
            return _ROLE.sub(lambda role: _TARGET.sub("", role[1]).lstrip("~!") or role[1], node.astext())
        if isinstance(node, nodes.literal):
            return f"`{node.astext()}`"
        if isinstance(node, nodes.substitution_reference):
            return self._substitutions.get(node.get("refname", ""), node.astext())
        if isinstance(node, nodes.image):
            return str(node.get("alt", ""))
        if isinstance(node, nodes.target | nodes.raw | nodes.system_message):
            return ""
        return self._inline(node) if isinstance(node, nodes.Element) else node.astext()

    def _unknown(self, message: nodes.Element) -> None:
        """Writes what docutils could not make sense of: the directive is in the message as it stands in the source."""
        for block in message.findall(nodes.literal_block):
            source = block.astext()
            directive = _DIRECTIVE.match(source)
            if directive and self._directives < _DEEPEST:
                self._directive(directive[1], directive[2])
            elif not directive or directive[1] not in _INSTRUCTIONS:
                self.markdown.code(source)

    def _directive(self, name: str, rest: str) -> None:
        if name in _INSTRUCTIONS:
            return
        arguments, content = _split_directive(rest)
        if name in _CODE_DIRECTIVES:
            self.markdown.code(content, arguments)
            return
        self._directives += 1
        level = self._level
        if arguments and name in _TEXT_ARGUMENTS:
            self.write(self._parse(arguments))
        elif arguments:
            self.markdown.paragraph("\n".join(f"`{line}`" for line in arguments.split("\n")))
        if content:
            self.write(self._parse(content))
        self._level = level
        self._directives -= 1


def _split_directive(rest: str) -> tuple[str, str]:
    """Returns the argument and the dedented content of a directive; its options are left out."""
    argument, _, below = rest.partition("\n")
    lines = below.split("\n")
    position = 0
    arguments = [argument.strip()] if argument.strip() else []
    while position < len(lines) and lines[position].strip():
        if not _OPTION.match(lines[position]):
            arguments.append(lines[position].strip())
        position += 1
    return "\n".join(arguments), dedent("\n".join(lines[position:])).strip("\n")
