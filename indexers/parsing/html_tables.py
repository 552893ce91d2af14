"""Tables of HTML: the rows of those that hold values, and which ones only arrange the page."""

from __future__ import annotations

from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from indexers.parsing.html_tree import is_unseen, visible_text, walk

_MOST_SPANNED = 64  # columns or rows; more is a slip or a trap
_SPANNING = 100  # columns from the left whose cells span others, so that a small page does not make millions of cells
# In a table with header cells, lists and sections of a cell are values like others.
_STRUCTURE_OF_VALUES = frozenset({"table", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "article", "form"})
_STRUCTURE = _STRUCTURE_OF_VALUES | {"ul", "ol", "dl", "blockquote", "section"}


def is_layout(table: LexborNode) -> bool:
    """Tells whether a table only arranges blocks on the page, so that its cells are read one after the other."""
    role = table.attributes.get("role")
    if role in ("presentation", "none"):
        return True
    structure = _STRUCTURE if table.css_first("th") is None else _STRUCTURE_OF_VALUES
    inside = (node for node, entering in walk(table, is_unseen) if entering and node.mem_id != table.mem_id)
    return any(node.tag in structure for node in inside)


def table_rows(table: LexborNode) -> list[list[str]]:
    """Returns the visible cells of each row; what a cell spans beyond its own place is empty, so that columns agree."""
    rows: list[list[str]] = []
    spanned: dict[int, int] = {}  # rows below that a cell of a column still covers
    for row in table.css("tr"):
        if not is_unseen(row):
            cells = list(_cells(row, spanned))
            rows += [cells] if cells else []
    return rows


def _cells(row: LexborNode, spanned: dict[int, int]) -> Iterator[str]:
    column = 0
    for cell in row.css("th, td"):
        if is_unseen(cell):
            continue
        while spanned.get(column, 0):
            spanned[column] -= 1
            column += 1
            yield ""
        spans = column < _SPANNING
        below = _span(cell, "rowspan") - 1 if spans else 0
        for place in range(_span(cell, "colspan") if spans else 1):
            spanned[column] = below
            column += 1
            yield "" if place else visible_text(cell)
    for place in [place for place, below in spanned.items() if below and place >= column]:
        spanned[place] -= 1


def _span(cell: LexborNode, name: str) -> int:
    value = cell.attributes.get(name) or ""
    return max(1, min(int(value), _MOST_SPANNED)) if value.isascii() and value.isdigit() and 0 < len(value) < 6 else 1
