"""Writes canonical Markdown, block by block, for the formats that are rendered into it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MARKUP_START = re.compile(r"^([ \t]{0,3})(#{1,6}(?=\s|$)|```|~~~|(?:-+|=+)[ \t]*$)", re.MULTILINE)
_SPACE = re.compile(r"[^\S\n]+")
_AROUND_BREAK = re.compile(r" ?\n ?")
_DEEPEST_INDENT = 12  # lists; deeper ones are indented like these, so that the text stays linear in the page
_MOST_FILLED_CELLS = 1_000_000  # one wide row and many short ones would make gigabytes of a small page
_FENCES = re.compile(r"`{3,}")


class MarkdownWriter:
    """Collects blocks. Inside a list item the first block gets the item's mark, the others are indented below it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._indents: list[str] = []
        self._mark: str | None = None
        self._in_item = False  # whether the last block was inside a list item

    def text(self) -> str:
        """Returns everything that was written, ending with a line feed; empty when nothing was."""
        return "".join([*self._parts, "\n"]) if self._parts else ""

    def paragraph(self, content: str) -> None:
        """Writes a paragraph; its line breaks stay, other space is collapsed, and nothing in it opens a block."""
        content = _AROUND_BREAK.sub("\n", _SPACE.sub(" ", content)).strip()
        if content:
            self._block(escaped(content))

    def heading(self, level: int, content: str) -> None:
        """Writes a heading of level 1 to 6; inside a list item it is a paragraph."""
        content = " ".join(content.split())
        if self._indents:
            self.paragraph(content)
        elif content:
            self._block(f"{'#' * min(max(level, 1), 6)} {content}")

    def code(self, content: str, language: str = "") -> None:
        """Writes code between fences that are longer than any fence in it."""
        content = content.strip("\n")
        if content.strip():
            longest = max((len(found) for found in _FENCES.findall(content)), default=2)
            fence = "`" * max(3, longest + 1)
            self._block(f"{fence}{language}\n{content}\n{fence}")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Writes a pipe table whose first row is the header; short rows are filled up, unless that takes millions."""
        width = max((len(row) for row in rows), default=0)
        if not width or not any(cell.strip() for row in rows for cell in row):
            return
        filled = width if width * len(rows) <= _MOST_FILLED_CELLS else 0
        lines = [_row([*row, *[""] * (filled - len(row))]) for row in rows]
        lines.insert(1, "|" + "---|" * width)
        self._block("\n".join(lines))

    def rule(self) -> None:
        """Writes a line between two parts."""
        self._block("---")

    def open_item(self, mark: str) -> None:
        """Starts a list item: `-` or a number with a full stop."""
        self._mark = f"{''.join(self._indents)}{mark} "
        self._indents.append(" " * (len(mark) + 1) if len(self._indents) < _DEEPEST_INDENT else "")

    def close_item(self) -> None:
        """Ends the list item that was opened last."""
        if self._indents:
            self._indents.pop()
        self._mark = None

    def close_list(self) -> None:
        """Ends a list, so that another one right after it stands apart."""
        self._in_item = bool(self._indents)

    def _block(self, content: str) -> None:
        indent = "".join(self._indents)
        lines = [f"{indent}{line}" if line else "" for line in content.split("\n")]
        if self._mark is not None:
            lines[0] = self._mark + content.split("\n", 1)[0]
        if self._parts:
            self._parts.append("\n" if self._in_item and self._mark is not None else "\n\n")
        self._parts.append("\n".join(lines))
        self._mark = None
        self._in_item = bool(self._indents)


def escaped(content: str) -> str:
    """Returns text of which no line opens a block of code, or makes a heading of itself or of the line above it."""
    return _MARKUP_START.sub(r"\1\\\2", content)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
