"""HTML to canonical Markdown: what a reader sees, in the order of the page, with its structure.

Parsed by lexbor (through selectolax), an HTML5 parser, so that broken markup gives the tree a browser would build. The
tree is walked without recursion, since pages nest as deep as they like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from indexers.errors import ParseFailed
from indexers.parsing.charsets import decode
from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document, TextFormat

MAX_DEPTH = 5_000  # the parser takes quadratic time in the depth
MAX_ATTRIBUTES = 20_000  # and in the attributes of one element

_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_LONG_TAG = re.compile(r"<[a-zA-Z][^<>]{100000,}")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_INVISIBLE_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)

# Elements that need no end tag do not tell how deep a page nests.
_NOT_COUNTED = frozenset(
    {"p", "li", "td", "th", "tr", "dt", "dd", "option", "optgroup", "thead", "tbody", "tfoot", "colgroup", "rp", "rt"}
    | {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_UNSEEN = frozenset(
    {"script", "style", "template", "noscript", "head", "iframe", "object", "svg", "canvas", "audio", "video", "dialog"}
    | {"-comment", "-doctype", "datalist"}
)
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label"}
    | {"mark", "q", "ruby", "rb", "rt", "rp", "s", "samp", "small", "span", "strong", "strike", "sub", "sup", "time"}
    | {"tt", "u", "var", "wbr", "big", "acronym", "nobr", "picture", "math"}
)
_STRUCTURE = frozenset(
    {"table", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "ul", "ol", "dl", "blockquote", "section", "article", "form"}
)
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


def check_html(source: str, name: str) -> None:
    """Raises: ParseFailed: the page would take the parser very long."""
    if nesting_depth(source) > MAX_DEPTH:
        raise ParseFailed(name, f"nests elements deeper than {MAX_DEPTH} levels", "bomb")
    if most_attributes(source) > MAX_ATTRIBUTES:
        raise ParseFailed(name, f"has an element of more than {MAX_ATTRIBUTES} attributes", "bomb")


def page_text(source: str, name: str) -> str:
    """Returns the canonical Markdown of a page inside another format. Raises: ParseFailed: as `check_html`."""
    check_html(source, name)
    return render_html(source)[1]


def render_html(source: str) -> tuple[str, str]:
    """Returns the title, which may be empty, and the canonical Markdown of a page."""
    tree = LexborHTMLParser(source)
    renderer = _Renderer()
    if tree.body is not None:
        renderer.render(tree.body)
    drawn = {node.mem_id for node in tree.css("svg title")}  # the name of a drawing, not of the page
    found = next((node for node in tree.css("title") if node.mem_id not in drawn), None)
    title = " ".join(found.text().split()) if found is not None else ""
    return title or renderer.first_heading, renderer.writer.text()


def nesting_depth(source: str) -> int:
    """Estimates how deep elements nest, from the tags alone; never too low by more than the unclosed ones."""
    depth = deepest = 0
    for match in _TAG.finditer(source):
        if match[2].lower() not in _NOT_COUNTED:
            depth = max(0, depth + (-1 if match[1] else 1))
            deepest = max(deepest, depth)
    return deepest


def most_attributes(source: str) -> int:
    """Estimates how many attributes the element with most of them has; 0 when no tag is long enough to matter."""
    tags = (_QUOTED.sub("", match[0]) for match in _LONG_TAG.finditer(source))
    return max((len(tag.split()) for tag in tags), default=0)


class _Renderer:
    """Writes a tree as Markdown. Inline text is collected until a block starts or ends."""

    def __init__(self) -> None:
        self.writer = MarkdownWriter()
        self.first_heading = ""
        self._inline: list[str] = []
        self._numbers: list[int | None] = []  # the next number of each open list; None in a bullet list

    def render(self, root: LexborNode) -> None:
        for node, entering in _walk(root, self._whole):
            if entering:
                self._enter(node)
            else:
                self._leave(node)
        self._flush()

    def _whole(self, node: LexborNode) -> bool:
        """Handles the elements that are written at once; True when their children are done with."""
        tag = node.tag or ""
        if is_unseen(node):
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
            self._inline.append(_one_line(node.text_content or ""))
        elif tag == "br":
            self._inline.append("\n")
        elif tag == "img":
            self._inline.append(_one_line(node.attributes.get("alt") or ""))
        elif tag not in _INLINE:
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
        if tag in _INLINE or tag == "-text" or tag in ("br", "img"):
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
            self.writer.paragraph(_one_line(visible_text(caption)))
        rows = [
            [visible_text(cell) for cell in row.css("th, td") if not is_unseen(cell)]
            for row in table.css("tr")
            if not is_unseen(row)
        ]
        self.writer.table([row for row in rows if row])


def is_unseen(node: LexborNode) -> bool:
    """Tells whether a reader of the page does not see the element."""
    if (node.tag or "") in _UNSEEN:
        return True
    if (node.tag or "").startswith("-"):
        return False
    attributes = node.attributes
    return "hidden" in attributes or bool(_INVISIBLE_STYLE.search(attributes.get("style") or ""))


def is_layout(table: LexborNode) -> bool:
    """Tells whether a table only arranges blocks on the page, so that its cells are read one after the other."""
    inside = (node for node, entering in _walk(table, is_unseen) if entering and node.mem_id != table.mem_id)
    return any(node.tag in _STRUCTURE for node in inside)


def visible_text(root: LexborNode, collapse: bool = True) -> str:
    """Returns the text that a reader sees in an element; blocks and line breaks in it are set apart."""
    parts: list[str] = []
    for node, entering in _walk(root, is_unseen):
        tag = node.tag or ""
        if tag == "-text":
            parts += [node.text_content or ""] if entering else []
        elif tag == "br":
            parts += ["\n"] if entering else []
        elif tag == "img" and entering:
            parts.append(node.attributes.get("alt") or "")
        elif collapse and tag not in _INLINE:
            parts.append(" ")
    return "".join(parts)


def _walk(root: LexborNode, whole: Callable[[LexborNode], bool]) -> Iterator[tuple[LexborNode, bool]]:
    """Yields each node when it is entered and when it is left; not what `whole` says is done with."""
    # Comparing nodes compares their markup, so they are told apart by their place in memory.
    node, top = root, root.mem_id
    while True:
        child = None
        if node.mem_id == top or not whole(node):
            yield node, True
            child = node.child
            if child is None:
                yield node, False
        if child is not None:
            node = child
            continue
        following = None
        while node.mem_id != top and (following := node.next) is None:
            parent = node.parent
            if parent is None:
                return
            node = parent
            yield node, False
        if following is None:
            return
        node = following


def _one_line(text: str) -> str:
    return text.replace("\n", " ")
