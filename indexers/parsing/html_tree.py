"""Trees of HTML: how deep they may be, what of them a reader sees, and walking them without recursion.

Parsed by lexbor (through selectolax), an HTML5 parser, so that broken markup gives the tree a browser would build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborNode

from indexers.errors import ParseFailed

MAX_DEPTH = 5_000  # the parser takes quadratic time in the depth
MAX_ATTRIBUTES = 20_000  # and in the attributes of one element

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
INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label"}
    | {"mark", "q", "ruby", "rb", "rt", "rp", "s", "samp", "small", "span", "strong", "strike", "sub", "sup", "time"}
    | {"tt", "u", "var", "wbr", "big", "acronym", "nobr", "picture", "math"}
)


def check_html(source: str, name: str) -> None:
    """Raises: ParseFailed: the page would take the parser very long."""
    if nesting_depth(source) > MAX_DEPTH:
        raise ParseFailed(name, f"nests elements deeper than {MAX_DEPTH} levels", "bomb")
    if most_attributes(source) > MAX_ATTRIBUTES:
        raise ParseFailed(name, f"has an element of more than {MAX_ATTRIBUTES} attributes", "bomb")


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


def is_unseen(node: LexborNode) -> bool:
    """Tells whether a reader of the page does not see the element."""
    if (node.tag or "") in _UNSEEN:
        return True
    if (node.tag or "").startswith("-"):
        return False
    attributes = node.attributes
    return "hidden" in attributes or bool(_INVISIBLE_STYLE.search(attributes.get("style") or ""))


def visible_text(root: LexborNode, collapse: bool = True) -> str:
    """Returns the text that a reader sees in an element; blocks and line breaks in it are set apart."""
    parts: list[str] = []
    for node, entering in walk(root, is_unseen):
        tag = node.tag or ""
        if tag == "-text":
            parts += [node.text_content or ""] if entering else []
        elif tag == "br":
            parts += ["\n"] if entering else []
        elif tag == "img" and entering:
            parts.append(node.attributes.get("alt") or "")
        elif collapse and tag not in INLINE:
            parts.append(" ")
    return "".join(parts)


def walk(root: LexborNode, whole: Callable[[LexborNode], bool]) -> Iterator[tuple[LexborNode, bool]]:
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


def one_line(text: str) -> str:
    """Returns the text with spaces for line feeds."""
    return text.replace("\n", " ")
