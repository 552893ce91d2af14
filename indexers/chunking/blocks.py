"""Finds the blocks of a canonical text: paragraphs, lists, tables, code, each under its path of headings.

Markdown is read by markdown-it's block rules, which know where a fence or an HTML block ends, so that a `#` in code is
no heading and an unclosed fence loses nothing. Only the line ranges are taken from it; whatever it passes over (link
definitions) becomes a paragraph, so that every visible character is in exactly one block. Front matter, which its rules
would read as a heading, is taken off first.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from indexers.chunking.spans import trimmed
from indexers.types import TextFormat

_LINE_BREAK = re.compile(r"\r\n?|\n")
_PARAGRAPH_BREAK = re.compile(r"(?:\r\n?+|\n)[^\S\r\n]*(?:\r\n?|\n)")
_FRONT_LINE = re.compile(r"[\w\"'][^:\r\n]*:(?:\s|$)|[ \t#]|- |-?\s*$")  # a key, or what may stand under one
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")


class BlockKind(enum.Enum):
    """What a block is made of, which says where it may be split."""

    PROSE = "prose"  # at sentences
    CODE = "code"  # at lines
    TABLE = "table"  # at lines, without overlap
    HEADING = "heading"  # never seen outside: a heading opens the block that follows


@dataclass(frozen=True, slots=True)
class Block:
    """A span of the text that starts and ends with a visible character and lies on one page."""

    start: int
    end: int
    kind: BlockKind
    heading_path: tuple[str, ...]
    page: int  # from 1; 0 when the text has no pages


def find_blocks(text: str, format: TextFormat) -> list[Block]:
    """Returns the blocks in order; they do not overlap and hold every visible character of the text."""
    # A form feed ends a line and a page; replaced by a line feed it ends the line for markdown-it, too.
    flat = text.replace("\f", "\n")
    found = _markdown_blocks(flat) if format is TextFormat.MARKDOWN else _paragraphs(flat, 0, len(flat))
    return list(_join_headings(_on_pages(text, found)))


def front_matter_end(text: str) -> int:
    """Returns where the YAML front matter of a Markdown text ends, its closing line included; 0 when it has none."""
    position = 0
    for number, line in enumerate(_lines(text)):
        mark = line.rstrip()
        if number == 0 and mark != "---":
            return 0
        position += len(line)
        if number > 1 and mark in ("---", "..."):
            return position
        # A rule stands over prose or an empty line; front matter starts with a key, and holds keys throughout.
        if (number == 1 and not mark) or (number and not _FRONT_LINE.match(line)):
            return 0
    return 0


def _lines(text: str) -> Iterator[str]:
    start = 0
    for match in _LINE_BREAK.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _paragraphs(flat: str, start: int, end: int, path: tuple[str, ...] = ()) -> Iterator[Block]:
    for stop in [match.end() for match in _PARAGRAPH_BREAK.finditer(flat, start, end)] + [end]:
        yield Block(start, stop, BlockKind.PROSE, path, 0)
        start = stop


def _markdown_blocks(flat: str) -> Iterator[Block]:
    position = front_matter_end(flat)
    if position:
        yield Block(0, position, BlockKind.PROSE, (), 0)
    lines = [position, *(match.end() for match in _LINE_BREAK.finditer(flat, position)), len(flat)]
    path: list[tuple[int, str]] = []
    for kind, level, title, first, last in _ranges(flat[position:]):
        start, end = lines[min(first, len(lines) - 1)], lines[min(last, len(lines) - 1)]
        if start > position:
            yield from _paragraphs(flat, position, start, tuple(name for _, name in path))
        if kind is BlockKind.HEADING:
            path = [entry for entry in path if entry[0] < level]
            if title:
                path.append((level, title))
        yield Block(max(start, position), end, kind, tuple(name for _, name in path), 0)
        position = max(position, end)
    yield from _paragraphs(flat, position, len(flat), tuple(name for _, name in path))


def _ranges(flat: str) -> Iterator[tuple[BlockKind, int, str, int, int]]:
    """Yields kind, heading level, heading text, first line and line after the last of each top-level block."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse(flat)
    for number, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0 and token.map:
            kind, level = _kind(token)
            title = _heading_title(tokens[number + 1].content) if kind is BlockKind.HEADING else ""
            yield kind, level, title, token.map[0], token.map[1]


def _kind(token: Token) -> tuple[BlockKind, int]:
    if token.type == "heading_open":
        return BlockKind.HEADING, int(token.tag[1])
    if token.type in ("fence", "code_block"):
        return BlockKind.CODE, 0
    return (BlockKind.TABLE if token.type == "table_open" else BlockKind.PROSE), 0


def _heading_title(content: str) -> str:
    return " ".join(_LINK.sub(r"\1", content).replace("`", "").replace("**", "").split())


def _on_pages(text: str, blocks: Iterable[Block]) -> Iterator[Block]:
    """Cuts blocks where a page ends, trims them, drops those without a visible character, and numbers the pages."""
    page = 1 if "\f" in text else 0
    position = 0
    for block in blocks:
        start = block.start
        while start < block.end:
            feed = text.find("\f", start, block.end)
            end = block.end if feed < 0 else feed
            page += text.count("\f", position, start)
            position = start
            for first, last in trimmed(text, start, end):
                yield replace(block, start=first, end=last, page=page)
            start = end + 1 if feed >= 0 else end


def _join_headings(blocks: Iterable[Block]) -> Iterator[Block]:
    """Lets each heading open the block below it; one with nothing below it becomes a paragraph of its own."""
    waiting: Block | None = None
    for block in blocks:
        if waiting is not None and not _opens(waiting, block):
            yield replace(waiting, kind=BlockKind.PROSE)
            waiting = None
        joined = block if waiting is None else replace(block, start=waiting.start)
        waiting = joined if block.kind is BlockKind.HEADING else None
        if waiting is None:
            yield joined
    if waiting is not None:
        yield replace(waiting, kind=BlockKind.PROSE)


def _opens(heading: Block, block: Block) -> bool:
    return heading.page == block.page and block.heading_path[: len(heading.heading_path)] == heading.heading_path
