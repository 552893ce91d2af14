"""What of a page is its content: its main part, less what stands on every page of a site.

A page that says where its content is (`main`, or an `article` with most of the text) is taken at its word. Otherwise
what is left out must say so by its element or role, or by its name and by being mostly links, or be a notice about
cookies. When in doubt a part stays: a menu that is indexed costs little, a paragraph that is not costs an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from indexers.parsing.html_tree import is_unseen, walk

_ENOUGH = 200  # visible characters with which a main part is believed, however much stands around it
_MOST = 0.5  # of the text, from which on something is most of it
_NOTICE = 2_000  # visible characters of a notice about cookies at most
_FURNITURE = frozenset({"nav", "footer", "aside", "menu"})
_ROLES = frozenset({"navigation", "contentinfo", "complementary", "search", "menu", "menubar", "toolbar"})
_NAMES = re.compile(
    r"(?:^|[-_\s])(?:nav|navbar|navigation|menu|menubar|sidebar|breadcrumbs?|footer|toc|related|share|social|pagination)"
    r"(?:[-_\s]|$)",
    re.IGNORECASE,
)
_COOKIES = re.compile(
    r"cookie-?_?(?:banner|consent|notice|bar|popup|message|law|dialog|overlay|wall|info)|consent-?_?(?:banner|popup|dialog)"
    r"|onetrust|cookiebot|cc-window|gdpr",
    re.IGNORECASE,
)
_BLOCKS = frozenset({"div", "section", "ul", "ol", "form", "header", "table", "article", "main", "body", *_FURNITURE})


@dataclass(frozen=True, slots=True)
class Content:
    """The parts of a page to read, in order, and the elements in them to pass over, by their place in memory."""

    roots: tuple[LexborNode, ...]
    left_out: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Size:
    characters: int = 0  # visible ones
    linked: int = 0  # of them in links

    @property
    def is_links(self) -> bool:
        return self.linked > _MOST * self.characters


_Sizes = Mapping[int, _Size]


def main_content(tree: LexborHTMLParser, body: LexborNode) -> Content:
    """Returns what to read of a page; the whole body when nothing says what of it is not content."""
    sizes = _measured(body)
    if not sizes.get(body.mem_id, _Size()).characters:
        return Content((body,))
    furniture = frozenset(node.mem_id for node in _furniture(body, sizes))
    left = sizes[body.mem_id].characters - sum(sizes[place].characters for place in furniture)
    mains = _outermost(body, sizes, _is_main) or _outermost(body, sizes, lambda node: node.tag == "article")
    size = sum(sizes[node.mem_id].characters for node in mains)
    believed = _ENOUGH if mains and _is_main(mains[0]) else left
    if size and size >= min(believed, _MOST * left):
        inside = frozenset(node.mem_id for root in mains for node in _furniture(root, sizes))
        return Content((*_heading(tree, mains), *mains), inside)
    # A page of nothing but links is what it is.
    return Content((body,), furniture if left else frozenset())


def _measured(body: LexborNode) -> _Sizes:
    """Returns the sizes of the elements that may be left out or kept, by their place in memory."""
    sizes: dict[int, _Size] = {}
    open_at: list[tuple[int, int]] = []
    seen = linked = links = 0
    for node, entering in walk(body, is_unseen):
        tag = node.tag or ""
        if tag == "-text":
            count = len("".join((node.text_content or "").split())) if entering else 0
            seen, linked = seen + count, linked + (count if links else 0)
        elif tag in ("a", "button"):
            links += 1 if entering else -1
        elif tag in _BLOCKS and entering:
            open_at.append((seen, linked))
        elif tag in _BLOCKS:
            before = open_at.pop()
            sizes[node.mem_id] = _Size(seen - before[0], linked - before[1])
    return sizes


def _furniture(root: LexborNode, sizes: _Sizes) -> list[LexborNode]:
    """Returns the outermost elements below a root that are no content."""
    in_main = _is_main(root) or root.tag == "article"
    return _outermost(root, sizes, lambda node: _is_furniture(node, sizes[node.mem_id], in_main))


def _is_furniture(node: LexborNode, size: _Size, in_main: bool) -> bool:
    tag, attributes = node.tag or "", node.attributes
    role = (attributes.get("role") or "").lower()
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    if _COOKIES.search(names) and size.characters <= _NOTICE and node.css_first("button, a, input") is not None:
        return True
    if tag in ("nav", "menu") or role in ("navigation", "search", "menu", "menubar"):
        return True
    if in_main:
        # Here an aside is a note, and a footer or a list of links belongs to the text.
        return False
    if tag in _FURNITURE or role in _ROLES:
        return True
    return size.is_links and (tag == "header" or bool(_NAMES.search(names)))


def _outermost(root: LexborNode, sizes: _Sizes, wanted: Callable[[LexborNode], bool]) -> list[LexborNode]:
    """Returns the elements with text below a root that are wanted and in no other of them, in order."""
    found: list[LexborNode] = []

    def whole(node: LexborNode) -> bool:
        if is_unseen(node):
            return True
        if node.mem_id in sizes and sizes[node.mem_id].characters and wanted(node):
            found.append(node)
            return True
        return False

    for _ in walk(root, whole):
        pass
    return found


def _heading(tree: LexborHTMLParser, mains: list[LexborNode]) -> Iterator[LexborNode]:
    """Yields the heading of the page when it stands before its main part and is no link home."""
    if any(main.css_first("h1") is not None for main in mains):
        return
    heading = tree.css_first("h1")
    if heading is not None and not is_unseen(heading) and heading.css_first("a") is None:
        yield heading


def _is_main(node: LexborNode) -> bool:
    return node.tag == "main" or (node.attributes.get("role") or "").lower() == "main"
