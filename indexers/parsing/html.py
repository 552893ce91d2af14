"""HTML to canonical Markdown: what a reader sees, in the order of the page, with its structure.

Menus, footers and notices about cookies are left out of pages of sites (`html_main.py`); pages in books and mail are
read whole.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from selectolax.lexbor import LexborHTMLParser, LexborNode

from indexers.parsing.charsets import decode
from indexers.parsing.html_main import Content, main_content
from indexers.parsing.html_tables import is_layout, table_rows
from indexers.parsing.html_tree import INLINE, check_html, is_unseen, one_line, visible_text, walk
from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document, TextFormat

_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_PERMALINKS = frozenset({"¶", "#", "§", "🔗", ""})


def parse_html(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads an HTML file; its title is that of the page, or its first heading.

    Raises:
        ParseFailed: too large, nested too deep, an element of too many attributes, or nothing to read.
    """
    content = read_bounded(file, options)
    declared = _CHARSET.search(content[:4096])
    decoded, warnings = decode(content, declared[1].decode("ascii", "replace") if declared else "")
    source, cleaned = clean(decoded)
    check_html(source, file.name)
    title, text = render_html(source)
    require_text(text, file.name, options)
    document = Document(file.name, title or file.stem, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, warnings + cleaned)


def page_text(source: str, name: str) -> str:
    """Returns the canonical Markdown of a page inside another format. Raises: ParseFailed: as `check_html`."""
    check_html(source, name)
    return render_html(source, whole=True)[1]


def render_html(source: str, whole: bool = False) -> tuple[str, str]:
    """Returns the title, which may be empty, and the canonical Markdown of a page: of its content, or of all of it."""
    tree = LexborHTMLParser(source)
    content = Content(())
    if tree.body is not None:
        content = Content((tree.body,)) if whole else main_content(tree, tree.body)
    renderer = _Renderer(content.left_out)
    for root in content.roots:
        renderer.render(root)
    drawn = {node.mem_id for node in tree.css("svg title")}  # the name of a drawing, not of the page
    found = next((node for node in tree.css("title") if node.mem_id not in drawn), None)
    title = " ".join(found.text().split()) if found is not None else ""
    return title or renderer.first_heading, renderer.writer.text()


class _Renderer:
    """Writes a tree as Markdown. Inline text is collected until a block starts or ends."""

    def __init__(self, left_out: AbstractSet[int]) -> None:
        self.writer = MarkdownWriter()
        self._left_out = left_out
        self.first_heading = ""
        self._inline: list[str] = []
        self._numbers: list[int | None] = []  # the next number of each open list; None in a bullet list

    def render(self, root: LexborNode) -> None:
        """Writes an element and what is in it."""
        if root.tag == "h1":
            self._heading(root, 1)
            return
        for node, entering in walk(root, self._whole):
            if entering:
                self._enter(node)
            else:
                self._leave(node)
        self._flush()

    def _whole(self, node: LexborNode) -> bool:
        """Handles the elements that are written at once; True when their children are done with."""
        tag = node.tag or ""
        if is_unseen(node) or node.mem_id in self._left_out:
            return True
        if tag == "pre":
            self._flush()
            self.writer.code(visible_text(node, collapse=False))
        elif tag == "table" and not is_layout(node):
            self._flush()
            self._table(node)
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._heading(node, int(tag[1]))
        elif tag == "code":
            self._code(visible_text(node))
        elif tag == "a":
            return visible_text(node).strip() in _PERMALINKS and node.css_first("img") is None
        else:
            return False
        return True

    def _enter(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag == "-text":
            self._inline.append(one_line(node.text_content or ""))
        elif tag == "br":
            self._inline.append("\n")
        elif tag == "img":
            self._inline.append(one_line(node.attributes.get("alt") or ""))
        elif tag not in INLINE:
            self._flush()
            self._open(node, tag)

    def _open(self, node: LexborNode, tag: str) -> None:
        if tag == "ul":
            self._numbers.append(None)
        elif tag == "ol":
            start = node.attributes.get("start") or "1"
            self._numbers.append(int(start) if start.isdecimal() and len(start) < 10 else 1)
        elif tag == "li":
            self.writer.open_item(self._item_mark())
        elif tag == "hr":
            self.writer.rule()

    def _item_mark(self) -> str:
        number = self._numbers[-1] if self._numbers else None
        if number is None:
            return "-"
        self._numbers[-1] = number + 1
        return f"{number}."

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in INLINE or tag == "-text" or tag in ("br", "img"):
            return
        self._flush()
        if tag == "li":
            self.writer.close_item()
        elif tag in ("ul", "ol") and self._numbers:
            self._numbers.pop()
            self.writer.close_list()

    def _flush(self) -> None:
        self.writer.paragraph("".join(self._inline))
        self._inline.clear()

    def _heading(self, node: LexborNode, level: int) -> None:
        self._flush()
        text = " ".join(visible_text(node).split()).rstrip("¶§🔗").strip()
        self.first_heading = self.first_heading or text
        self.writer.heading(level, text)

    def _code(self, content: str) -> None:
        content = " ".join(content.split())
        self._inline.append(f"`{content}`" if content and "`" not in content else content)

    def _table(self, table: LexborNode) -> None:
        caption = table.css_first("caption")
        if caption is not None:
            self.writer.paragraph(one_line(visible_text(caption)))
        self.writer.table(table_rows(table))
