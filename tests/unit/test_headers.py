"""What of a chunk is embedded before its text."""

from __future__ import annotations

from indexers.chunking import header_text
from indexers.types import headed
from tests.fakes.encoders import PieceCounter

COUNTER = PieceCounter()


def test_the_header_names_title_and_headings() -> None:
    """Title and heading path stand above the text, on one line."""
    header = header_text("Pumps", ("Seals", "Check\nit"), COUNTER, 256)
    assert headed(header, "Look.") == "Pumps > Seals > Check it\nLook."


def test_without_title_and_headings_there_is_no_header() -> None:
    """The text alone is embedded, without an empty line above it."""
    assert headed(header_text(" ", (), COUNTER, 256), "Look.") == "Look."


def test_a_heading_that_repeats_the_title_is_left_out() -> None:
    """A page's first heading is often its title."""
    assert header_text("Pumps", ("pumps", "Seals"), COUNTER, 256) == "pumps > Seals"


def test_a_long_header_keeps_the_innermost_heading_and_the_title() -> None:
    """Outer headings go first, and the whole stays within a quarter of the limit."""
    path = tuple(f"level {number} words" for number in range(20))
    header = header_text("Title", path, COUNTER, 64)
    assert header.startswith("Title > ")
    assert header.endswith(" > level 19 words")
    assert "level 0 " not in header
    assert COUNTER.count(header) <= 16


def test_every_part_of_a_header_can_be_too_long() -> None:
    """A title and a heading that are both above the bound share it."""
    header = header_text("title " * 500, ("heading " * 500,), COUNTER, 64)
    assert COUNTER.count(header) <= 16
    assert header.startswith("title ")
    assert "heading" in header
