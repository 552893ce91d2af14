"""Books, and XML of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SourceItem
from tests.fakes.good_files import zipped

_CONTAINER = '<container><rootfiles><rootfile full-path="in/p.opf"/></rootfiles></container>'
_NCX = (
    '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>Chapter A</text></navLabel>'
    '<content src="a.xhtml"/><navPoint><navLabel><text>Section</text></navLabel><content src="a.xhtml#s"/></navPoint>'
    "</navPoint></navMap></ncx>"
)


def _parsed(folder: Path, name: str, content: bytes) -> SourceItem:
    path = folder / name
    path.write_bytes(content)
    [item] = parse_file(SourceFile(path, name, path.as_uri()))
    return item


def _book(chapters: Mapping[str, str], contents: Mapping[str, tuple[str, str]], **parts: str) -> bytes:
    """Returns a book whose spine is its chapters in reverse; contents are parts with their attributes."""
    pages = "".join(f'<item id="{one}" href="{one}.xhtml" media-type="application/xhtml+xml"/>' for one in chapters)
    lists = "".join(f'<item id="{one}" href="{one}" {how}/>' for one, (how, _) in contents.items())
    spine = "".join(f'<itemref idref="{one}"/>' for one in [*contents, *reversed(list(chapters))])
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>Book</dc:title></metadata><manifest>{pages}{lists}</manifest><spine>{spine}</spine></package>"
    )
    files = {f"in/{one}.xhtml": f"<html><body>{text}</body></html>" for one, text in chapters.items() if text}
    listed = {f"in/{one}": part for one, (_, part) in contents.items()}
    more = {f"META-INF/{one}.xml": part for one, part in parts.items()}
    return zipped({"META-INF/container.xml": _CONTAINER, "in/p.opf": package, **files, **listed, **more})


def test_chapters_follow_the_spine(tmp_path: Path) -> None:
    """The order is that of reading, not that of the archive; notes and footers of a chapter are kept."""
    item = _parsed(tmp_path, "a.epub", _book({"a": "<h1>a</h1>", "b": "<h1>b</h1><aside>note</aside>"}, {}))
    assert isinstance(item, ParsedDocument)
    assert (item.document.title, item.document.text) == ("Book", "# b\n\nnote\n\n# a\n")


@pytest.mark.parametrize(
    ("how", "contents"),
    [
        ('media-type="application/x-dtbncx+xml"', _NCX),
        (
            'media-type="application/xhtml+xml" properties="nav"',
            '<html><nav><a href="a.xhtml">Chapter <b>A</b></a><a href="a.xhtml#s">Section</a></nav></html>',
        ),
    ],
)
def test_the_table_of_contents_names_chapters(tmp_path: Path, how: str, contents: str) -> None:
    """Those without a heading of their own; itself it is no chapter, in the old format and the new."""
    item = _parsed(tmp_path, "a.epub", _book({"b": "<h2>B</h2>", "a": "<p>Text</p>"}, {"toc": (how, contents)}))
    assert isinstance(item, ParsedDocument)
    assert item.document.text == "# Chapter A\n\nText\n\n## B\n"


def test_a_broken_table_of_contents_costs_only_names(tmp_path: Path) -> None:
    """The chapters are read even so; one that declares entities fails the book."""
    how = 'media-type="application/x-dtbncx+xml"'
    item = _parsed(tmp_path, "a.epub", _book({"a": "<p>Text</p>"}, {"toc": (how, "<ncx")}))
    assert isinstance(item, ParsedDocument)
    assert item.document.text == "Text\n"
    item = _parsed(tmp_path, "a.epub", _book({"a": "x"}, {"toc": (how, '<!DOCTYPE n [<!ENTITY a "b">]><n/>')}))
    assert isinstance(item, ParseFailure)
    assert item.kind == "bomb"


def test_encrypted_chapters_are_told(tmp_path: Path) -> None:
    """All of them fail the book, some are a warning, and fonts are no chapters."""
    chapters = {"a": "<p>first</p>", "b": "<p>second</p>"}

    def protected(*parts: str) -> SourceItem:
        names = "".join(f'<CipherReference URI="{part}"/>' for part in parts)
        return _parsed(tmp_path, "a.epub", _book(chapters, {}, encryption=f"<encryption>{names}</encryption>"))

    assert isinstance(failed := protected("in/a.xhtml", "in/b.xhtml"), ParseFailure)
    assert failed.kind == "encrypted"
    assert isinstance(partly := protected("in/a.xhtml", "in/font.otf"), ParsedDocument)
    assert (partly.document.text, partly.warnings) == ("second\n", ("1 of 2 chapters are encrypted or missing",))
    assert isinstance(whole := protected("in/font.otf"), ParsedDocument)
    assert whole.warnings == ()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<r><title>T</title><p>Hi <b>bold</b> tail</p></r>", "# T\n\nHi bold tail\n"),
        ("<r xmlns='urn:x'><db><host>h</host><port>1</port></db></r>", "## db\n\nhost: h\n\nport: 1\n"),
        (
            "<r><db><host>h</host></db><string name='app'>Text</string></r>",
            "## db\n\nhost: h\n\n# r\n\nstring app: Text\n",
        ),
        (
            "<rss><channel><title>C</title><item><title>I</title><link>x</link></item></channel></rss>",
            "## C\n\n### I\n\nlink: x\n",
        ),
        (
            "<book><chapter><title>C</title><section><para>x<i>y</i></para></section></chapter></book>",
            "## C\n\n### section\n\nxy\n",
        ),
        ("<a>just <b>text</b></a>", "just text\n"),
        ("<a><b/><c>v</c></a>", "c: v\n"),
    ],
)
def test_xml_is_prose_and_values_under_headings(tmp_path: Path, source: str, text: str) -> None:
    """Mixed text stays together, values say their names, titles and names of what holds them are headings."""
    item = _parsed(tmp_path, "a.xml", source.encode())
    assert isinstance(item, ParsedDocument)
    assert item.document.text == text


def test_xml_with_entities_of_its_own_is_refused(tmp_path: Path) -> None:
    """A bomb of them costs nothing."""
    item = _parsed(tmp_path, "b.xml", b'<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>')
    assert isinstance(item, ParseFailure)
    assert item.kind == "bomb"
