"""Headings of PDF files, which are told by the sizes of letters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from indexers.chunking import Chunker
from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument
from indexers.parsing.pdf_lines import Line, headed_pages
from indexers.types import Document, TextFormat
from tests.fakes.encoders import PieceCounter
from tests.fakes.pdf import pdf_of_lines

_BODY = "A pump moves water from a low place to a high one."


def _read(folder: Path, pages: Sequence[Sequence[tuple[float, str]]], scaled: bool = False) -> Document:
    path = folder / "a.pdf"
    path.write_bytes(pdf_of_lines(pages, scaled))
    [item] = parse_file(SourceFile(path, path.name, path.as_uri()))
    assert isinstance(item, ParsedDocument), item
    return item.document


@pytest.mark.parametrize("scaled", [False, True])
def test_larger_lines_are_headings(tmp_path: Path, scaled: bool) -> None:
    """The larger the higher, whether the font is large or drawn larger; chunks are named by them, pages counted."""
    pages = [
        [(20, "Pumps"), (10, _BODY), (14, "Seals"), (10, _BODY), (10, _BODY)],
        [(14, "Valves"), (10, _BODY)],
    ]
    document = _read(tmp_path, pages, scaled)
    assert document.format is TextFormat.MARKDOWN
    assert document.text == (f"# Pumps\n\n{_BODY}\n\n## Seals\n\n{_BODY}\n{_BODY}\f## Valves\n\n{_BODY}")
    chunks = Chunker(PieceCounter()).chunk(document)
    assert [(chunk.heading_path, chunk.page) for chunk in chunks] == [
        (("Pumps",), 1),
        (("Pumps", "Seals"), 1),
        (("Pumps", "Valves"), 2),
    ]


def test_pages_of_one_size_stay_plain(tmp_path: Path) -> None:
    """Where sizes tell nothing, the text is as it was printed."""
    document = _read(tmp_path, [[(10, "# Pumps"), (10, _BODY)]])
    assert (document.format, document.text) == (TextFormat.PLAIN, f"# Pumps\n{_BODY}")


def test_lines_of_the_text_are_no_markup(tmp_path: Path) -> None:
    """What looks like a heading or a rule in the running text is kept from being one."""
    document = _read(tmp_path, [[(20, "Pumps"), (10, "# no heading"), (10, "---"), (10, _BODY)]])
    assert document.text == f"# Pumps\n\n\\# no heading\n\\---\n{_BODY}"


def _pages(*pages: Sequence[tuple[float, str]]) -> list[str]:
    return headed_pages([[Line(text, size) for size, text in page] for page in pages])


@pytest.mark.parametrize(
    "pages",
    [
        [[(10.0, _BODY), (11.0, "Hardly larger")]],
        [[(10.0, _BODY), (20.0, "1 2 3")]],  # no letter
        [[(10.0, _BODY), (20.0, _BODY * 5)]],  # most of the text
        [[(10.0, _BODY * 9), (20.0, "a"), (20.0, "b"), (20.0, "c"), (20.0, "d")]],  # a large paragraph
        [[(20.0, "Company"), (10.0, _BODY)]] * 3,  # runs along
        [[(0.0, "unknown"), (0.0, _BODY)]],
        [[]],
        [],
    ],
)
def test_what_is_large_and_no_heading_is_text(pages: list[Sequence[tuple[float, str]]]) -> None:
    """Numbers, long texts, lines on every page, and sizes that are not known make no heading."""
    assert _pages(*pages) == []


def test_a_heading_may_take_several_lines() -> None:
    """Lines of one size that follow each other are one heading."""
    assert _pages([(20.0, "How water"), (20.0, "is moved"), (10.0, _BODY * 3)]) == [
        f"# How water is moved\n\n{_BODY * 3}"
    ]
