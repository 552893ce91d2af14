"""From files to canonical texts: dispatch, charsets, limits, plain text, Markdown and PDF."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from indexers.chunking import Chunker
from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.types import TextFormat
from tests.fakes.encoders import PieceCounter
from tests.fakes.pdf import pdf_bytes

PDFS = Path(__file__).parent / "pdf"  # one page "OWN-1 pump", AES-256; written with pypdf


def _items(folder: Path, name: str, content: bytes, options: ParseOptions | None = None) -> list[SourceItem]:
    path = folder / name
    path.write_bytes(content)
    return list(parse_file(SourceFile(path, name, path.as_uri()), options))


def _parsed(folder: Path, name: str, content: bytes) -> ParsedDocument:
    (item,) = _items(folder, name, content)
    assert isinstance(item, ParsedDocument), item
    return item


def _reason(folder: Path, name: str, content: bytes, options: ParseOptions | None = None) -> str:
    (item,) = _items(folder, name, content, options)
    assert isinstance(item, ParseFailure), item
    assert item.path == name
    return item.reason


def test_markdown_is_canonical_as_it_is(tmp_path: Path) -> None:
    """The text is kept, the title is the first heading, the id the name, the URI the file's."""
    parsed = _parsed(tmp_path, "a.md", b"intro\r\n\r\n# The `title`\r\ntext\n")
    document = parsed.document
    assert (document.document_id, document.title, document.format) == ("a.md", "The title", TextFormat.MARKDOWN)
    assert document.text == "intro\n\n# The `title`\ntext\n"
    assert document.source_uri == (tmp_path / "a.md").as_uri()
    assert parsed.warnings == ()


def test_front_matter_gives_the_title(tmp_path: Path) -> None:
    """A title above the text goes before the first heading; without either, the file's name serves."""
    assert _parsed(tmp_path, "a.md", b'---\nx: 1\ntitle: "Front one"\n---\n# Other').document.title == "Front one"
    assert _parsed(tmp_path, "pump_seal-guide.md", b"text").document.title == "pump seal guide"


def test_front_matter_without_a_title_gives_none(tmp_path: Path) -> None:
    """Its keys are no heading; the first heading below it serves."""
    assert _parsed(tmp_path, "a.md", b"---\nlang: fr\n---\n# Below\ntext").document.title == "Below"
    assert _parsed(tmp_path, "a.md", b"---\nlang: fr\n---\ntext").document.title == "a"


def test_plain_text_keeps_its_pages(tmp_path: Path) -> None:
    """Form feeds separate pages in plain text, and only there."""
    assert _parsed(tmp_path, "a.txt", b"one\ftwo").document.text == "one\ftwo"
    assert _parsed(tmp_path, "a.md", b"one\ftwo").document.text == "one\ntwo"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.html", "<meta charset=windows-1251><p>насос KEEP</p>".encode("cp1251"), "насос KEEP"),
        ("a.txt", "pump K16".encode("utf-16"), "pump K16"),
        ("a.txt", "pump K32".encode("utf-32"), "pump K32"),
        ("a.txt", b"\xef\xbb\xbfpump K8", "pump K8"),
        ("a.csv", "id,text\n1,café".encode("latin-1"), "café"),
        ("a.csv", "id,text\n1,café".encode("utf-16"), "café"),
        ("a.txt", "Der Prüfer öffnet das Gehäuse. ".encode("cp1252") * 20, "Prüfer öffnet"),
        ("a.html", b"<meta charset=no-such><p>caf\xe9</p>", "café"),
        ("a.html", '<meta http-equiv=x content="text/html; charset=ISO-8859-1"><p>“x”'.encode("cp1252"), "“x”"),
        ("a.html", "<meta charset=latin1><p>café".encode(), "café"),
    ],
)
def test_charsets_are_found(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    """ING-10: byte order marks, UTF-8, what is declared, and a guess, in this order."""
    assert expected in _parsed(tmp_path, name, content).document.text


def test_a_guessed_charset_is_a_warning(tmp_path: Path) -> None:
    """What was not declared and is not UTF-8 is said to be a guess."""
    assert "cp1252" in _parsed(tmp_path, "a.txt", b"caf\xe9").warnings[0]
    assert "cp1252" in _parsed(tmp_path, "a.csv", b"text\ncaf\xe9").warnings[0]


def test_characters_that_cannot_be_stored_are_replaced(tmp_path: Path) -> None:
    """NUL characters go, and the warning counts them."""
    parsed = _parsed(tmp_path, "a.txt", b"a\x00b\x00c")
    assert parsed.document.text == "abc"
    assert parsed.warnings == ("2 NUL characters were removed",)


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.rst", "a.html", "a.pdf", "a.jsonl", "a.csv"])
@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
def test_an_empty_file_is_a_failure(tmp_path: Path, name: str, content: bytes) -> None:
    """Nothing to index is no success, in any format."""
    assert _reason(tmp_path, name, content) == "holds no text"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.pdf", b"<!DOCTYPE html><p>x</p>", "an HTML page"),
        ("a.pdf", b"PK\x03\x04xxxx", "a zip archive"),
        ("a.pdf", b"text", "something else than PDF"),
        ("a.txt", b"%PDF-1.4 ...", "a PDF file"),
        ("a.csv", b"PK\x03\x04xxxx", "a zip archive"),
        ("a.md", b"\x89PNG....", "a PNG image"),
        ("a.txt", b"ab\x00\x00\x01\x02", "binary"),
        ("a.html", b"<script>x</script><p hidden>y</p>", "holds no text"),
    ],
)
def test_a_misnamed_file_is_told_what_it_is(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    """ING-15: the first bytes are checked against the name."""
    assert reason in _reason(tmp_path, name, content)


def test_other_suffixes_are_skipped(tmp_path: Path) -> None:
    """A file that is not meant to be read is no failure."""
    assert _items(tmp_path, "a.bin", b"x") == [SkippedFile("a.bin", "suffix .bin is not read")]
    os.mkfifo(tmp_path / "pipe.txt")
    assert list(parse_file(SourceFile(tmp_path / "pipe.txt", "pipe.txt", ""))) == [
        SkippedFile("pipe.txt", "is no regular file")
    ]


def test_a_missing_file_is_a_failure(tmp_path: Path) -> None:
    """What the system says is passed on."""
    (item,) = parse_file(SourceFile(tmp_path / "no.txt", "no.txt", ""))
    assert item == ParseFailure("no.txt", "", "cannot be read: No such file or directory", "unreadable")


def test_limits_are_failures(tmp_path: Path) -> None:
    """A file or a text above its bound is named with the bound."""
    assert "larger than 10 bytes" in _reason(tmp_path, "a.txt", b"x" * 11, ParseOptions(max_file_bytes=10))
    assert "more than 10 char" in _reason(tmp_path, "a.md", b"x" * 11, ParseOptions(max_text_characters=10))
    assert "longer than 10 bytes" in _reason(tmp_path, "a.jsonl", b"x" * 11, ParseOptions(max_row_bytes=10))
    assert "more than 10 char" in _reason(
        tmp_path, "a.pdf", pdf_bytes(["x" * 20]), ParseOptions(max_text_characters=10)
    )


def test_names_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    """The id of such a file can be stored and shown."""
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("x", encoding="utf-8")
    (item,) = parse_file(SourceFile(path, path.name, path.as_uri()))
    assert isinstance(item, ParsedDocument)
    assert item.document.document_id == "caf\ufffd.txt"


def test_pdf_pages_without_text_are_named(tmp_path: Path) -> None:
    """ING-04: the warning counts the pages, and the chunks carry the numbers of the others."""
    pages = ["first page", "second page", *[""] * 6, "ninth page", "tenth page"]
    parsed = _parsed(tmp_path, "a.pdf", pdf_bytes(pages))
    assert parsed.warnings == ("pages 3-8 have no text (6 of 10)",)
    chunks = Chunker(PieceCounter()).chunk(parsed.document)
    assert [(chunk.page, chunk.text) for chunk in chunks] == [
        (1, "first page"),
        (2, "second page"),
        (9, "ninth page"),
        (10, "tenth page"),
    ]


def test_a_pdf_of_images_is_a_failure(tmp_path: Path) -> None:
    """A scan without a text layer is not indexed as nothing."""
    assert "no text on any of its 2 pages" in _reason(tmp_path, "a.pdf", pdf_bytes(["", ""]))


def test_protected_pdfs_are_told_apart(tmp_path: Path) -> None:
    """ING-15: a user password is a clear failure, an owner password alone keeps nobody from reading."""
    assert "encrypted" in _reason(tmp_path, "a.pdf", (PDFS / "user-password.pdf").read_bytes())
    assert "OWN-1" in _parsed(tmp_path, "b.pdf", (PDFS / "owner-password.pdf").read_bytes()).document.text


def test_a_truncated_pdf_is_a_failure(tmp_path: Path) -> None:
    """ING-15: the first 100 bytes are no file, and the reason says so."""
    assert "damaged or cut off" in _reason(tmp_path, "a.pdf", pdf_bytes(["x"])[:100])
