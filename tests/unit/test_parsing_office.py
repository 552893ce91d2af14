"""Office documents, books, mail and other formats: what a reader sees, in order, with its structure."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SourceItem
from indexers.types import TextFormat

_W = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
_P = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
_RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'


def parsed(folder: Path, name: str, content: bytes, options: ParseOptions | None = None) -> list[SourceItem]:
    """Parses content as a file of that name."""
    path = folder / name
    path.write_bytes(content)
    return list(parse_file(SourceFile(path, name, path.as_uri()), options))


def text_of(folder: Path, name: str, content: bytes) -> str:
    """Returns the text of the one document in a file."""
    [item] = parsed(folder, name, content)
    assert isinstance(item, ParsedDocument), item
    return item.document.text


def packed(parts: Mapping[str, str]) -> bytes:
    """Returns an archive of these parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def run(text: str) -> str:
    """Returns a run of text as Word writes it."""
    return f"<w:r><w:t>{text}</w:t></w:r>"


def docx(body: str, **parts: str) -> bytes:
    """Returns a Word document."""
    named = {f"word/{name}.xml": part for name, part in parts.items()}
    return packed({"word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>", **named})


def test_docx_keeps_tables_in_their_place(tmp_path: Path) -> None:
    """Text and tables stand in the order of the document, cells apart (case ING-05)."""
    cell = "<w:tc><w:p>{}</w:p></w:tc>".format
    table = "".join(
        f"<w:tr>{cell(run(left))}{cell(run(right))}</w:tr>" for left, right in (("Part", "Nm"), ("V7", "40"))
    )
    text = text_of(
        tmp_path, "a.docx", docx(f"<w:p>{run('before-1')}</w:p><w:tbl>{table}</w:tbl><w:p>{run('after-2')}</w:p>")
    )
    assert text == "before-1\n\n| Part | Nm |\n|---|---|\n| V7 | 40 |\n\nafter-2\n"


def test_docx_reads_what_is_outside_of_plain_paragraphs(tmp_path: Path) -> None:
    """Boxes, controls, insertions, links and footnotes are read, deletions are not (case ING-06)."""
    box = f"<w:txbxContent><w:p>{run('TBX-1')}</w:p></w:txbxContent>"
    both = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    body = (
        f"<w:p><w:r>{both}</w:r></w:p><w:sdt><w:sdtContent><w:p>{run('SDT-2')}</w:p></w:sdtContent></w:sdt>"
        f"<w:p><w:ins>{run('INS-3')}</w:ins><w:del><w:r><w:delText>DEL-4</w:delText></w:r></w:del>"
        f"<w:hyperlink>{run(' LNK-7')}</w:hyperlink></w:p>"
    )
    notes = (
        f'<w:footnotes {_W}><w:footnote w:type="separator"><w:p>{run("SEP")}</w:p></w:footnote>'
        f"<w:footnote><w:p>{run('FTN-6')}</w:p></w:footnote></w:footnotes>"
    )
    text = text_of(tmp_path, "a.docx", docx(body, footnotes=notes))
    assert text == "TBX-1\n\nSDT-2\n\nINS-3 LNK-7\n\nFTN-6\n"


def test_docx_headings_come_from_outline_levels_of_styles(tmp_path: Path) -> None:
    """A style's level makes a heading, inherited levels too; the first is the title of last resort."""
    styles = (
        f'<w:styles {_W}><w:style w:styleId="A"><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
        '<w:style w:styleId="B"><w:basedOn w:val="A"/></w:style><w:style w:styleId="C"><w:basedOn w:val="C"/></w:style>'
        "</w:styles>"
    )
    body = "".join(f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{run(style)}</w:p>' for style in "ABC")
    [item] = parsed(tmp_path, "a.docx", docx(body, styles=styles))
    assert isinstance(item, ParsedDocument)
    assert (item.document.title, item.document.text) == ("A", "# A\n\n# B\n\nC\n")


def test_pptx_slides_are_pages_in_the_order_of_the_show(tmp_path: Path) -> None:
    """Each slide is a page that begins with its title, whatever the order of its shapes."""

    def shape(text: str, kind: str = "") -> str:
        place = f'<p:ph type="{kind}"/>' if kind else ""
        body = f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>"
        return f"<p:sp><p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr>{body}</p:sp>"

    def slide(*shapes: str) -> str:
        return f"<p:sld {_P}><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:sld>"

    related = "".join(f'<Relationship Id="r{n}" Type="x/slide" Target="slides/slide{n}.xml"/>' for n in (1, 2))
    content = packed(
        {
            "ppt/presentation.xml": f'<p:presentation {_P}><p:sldIdLst><p:sldId r:id="r2"/><p:sldId r:id="r1"/>'
            "</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": _RELATIONS.format(related),
            "ppt/slides/slide1.xml": slide(shape("Last", "title"), shape("7", "sldNum")),
            "ppt/slides/slide2.xml": slide(shape("Body"), shape("First", "title")),
        }
    )
    assert text_of(tmp_path, "a.pptx", content).split("\f") == ["# First\n\nBody\n", "# Last\n"]


def test_mail_says_who_wrote_when(tmp_path: Path) -> None:
    """Subject, addresses and date are read as they are meant, attachments are named."""
    content = (
        b"From: a@b.c\r\nTo: d@e.f\r\nSubject: =?utf-8?q?H=C3=A9?=\r\nDate: Mon, 1 Jan 2024 10:00:00 +0100\r\n"
        b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nHello pump.\r\n'
        b"--x\r\nContent-Type: application/pdf\r\n"
        b"Content-Disposition: attachment; filename=plan.pdf\r\n\r\nabc\r\n--x--\r\n"
    )
    [item] = parsed(tmp_path, "a.eml", content)
    assert isinstance(item, ParsedDocument)
    assert item.document.title == "H\xe9"
    assert item.document.metadata["date"] == datetime(2024, 1, 1, 9, tzinfo=UTC)
    assert item.document.text.strip() == "Hello pump."
    assert "plan.pdf" in item.warnings[0]


def test_mailbox_gives_a_document_a_message(tmp_path: Path) -> None:
    """Messages are told apart, a quoted separator is text, and a broken one fails by itself."""
    content = b"From x\nSubject: one\n\nbody\n\n>From here\n\nFrom y\nno header\n\nFrom z\nSubject: two\n\nbody two\n"
    items = parsed(tmp_path, "a.mbox", content)
    texts = [item.document.text.strip() for item in items if isinstance(item, ParsedDocument)]
    assert texts == ["body\n\nFrom here", "body two"]
    assert sum(isinstance(item, ParseFailure) for item in items) == 1


def test_messages_keep_their_names(tmp_path: Path) -> None:
    """Their ids are those of the messages, so that one less before them changes nothing; a second one goes by place."""
    message = "From x\nSubject: s\nMessage-ID: <{}>\n\nbody\n\n".format
    whole = parsed(tmp_path, "a.mbox", (message("1@a") + message("2@a") + message("2@a") + message("")).encode())
    ids = [item.document.document_id for item in whole if isinstance(item, ParsedDocument)]
    assert ids == ["a.mbox#1@a", "a.mbox#2@a", "a.mbox#3", "a.mbox#4"]
    [less] = parsed(tmp_path, "a.mbox", message("2@a").encode())
    assert isinstance(less, ParsedDocument)
    assert less.document.document_id == "a.mbox#2@a"


def test_a_message_that_is_too_large_fails_by_itself(tmp_path: Path) -> None:
    """It is named, not cut, and the next one is read."""
    content = b"From x\nSubject: s\n\n" + b"long line\n" * 20 + b"\nFrom y\nSubject: t\n\nshort\n"
    failed, kept = parsed(tmp_path, "a.mbox", content, ParseOptions(max_row_bytes=100))
    assert isinstance(failed, ParseFailure)
    assert (failed.path, failed.kind) == ("a.mbox:1", "too_large")
    assert isinstance(kept, ParsedDocument)


def test_mail_is_plain_unless_it_is_a_page(tmp_path: Path) -> None:
    """A plain body is no Markdown, whatever it looks like; a page is, read whole."""
    [plain] = parsed(tmp_path, "a.eml", b"Subject: s\n\n# no heading\n---\n")
    page = b"Subject: s\nContent-Type: text/html; charset=latin-1\n\n<h1>caf\xe9</h1><footer>Bye</footer>"
    [html] = parsed(tmp_path, "b.eml", page)
    assert isinstance(plain, ParsedDocument)
    assert isinstance(html, ParsedDocument)
    assert plain.document.format is TextFormat.PLAIN
    assert (html.document.format, html.document.text) == (TextFormat.MARKDOWN, "# caf\xe9\n\nBye\n")


def test_odd_address_headers_fail_no_parser(tmp_path: Path) -> None:
    """What the standard library trips over is one failed message, or none."""
    content = b"From: a: b: c@d; <x@>;;\r\nTo: undisclosed:;\r\nSubject: s\r\n\r\ntext\r\n"
    [item] = parsed(tmp_path, "a.eml", content)
    assert isinstance(item, ParsedDocument | ParseFailure)


def test_notebook_cells_stand_in_order(tmp_path: Path) -> None:
    """Text as it is, code fenced with its language, textual output behind."""
    cells = [
        {"cell_type": "markdown", "source": ["# T\n", "text"]},
        {"cell_type": "code", "source": "print(1)", "outputs": [{"text": ["1\n"]}, {"data": {"image/png": "x"}}]},
    ]
    notebook = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}
    text = text_of(tmp_path, "a.ipynb", json.dumps(notebook).encode())
    assert text.startswith("# T\ntext\n")
    assert "```python\nprint(1)\n```" in text
    assert "```text\n1\n```" in text


def test_notebook_cells_end_by_themselves(tmp_path: Path) -> None:
    """An open fence does not swallow the next cell, pictures in text say nothing, errors say one line, colours go."""
    cells = [
        {"cell_type": "markdown", "source": "```\nopen"},
        {"cell_type": "markdown", "source": "![a](data:image/png;base64,AAAA+/==) b"},
        {
            "cell_type": "code",
            "source": "f()",
            "outputs": [
                {"output_type": "stream", "text": "\x1b[31mred\x1b[0m"},
                {"output_type": "error", "ename": "ValueError", "evalue": "x", "traceback": ["long"]},
            ],
        },
    ]
    notebook = {"cells": cells, "metadata": {"language_info": {"name": "julia"}}, "nbformat": 4}
    text = text_of(tmp_path, "a.ipynb", json.dumps(notebook).encode())
    assert text == "```\nopen\n```\n\n![a]() b\n\n```julia\nf()\n```\n\n```text\nred\nValueError: x\n```\n"


def test_logs_are_plain_text(tmp_path: Path) -> None:
    """They are read as they stand."""
    assert text_of(tmp_path, "a.log", b"12:00 pump started\n") == "12:00 pump started\n"


def test_json_array_is_rows_and_an_object_a_document(tmp_path: Path) -> None:
    """Each object of an array is a document; one without text shows its values under their paths."""
    rows = parsed(tmp_path, "a.json", b'[{"id": 1, "text": "one", "k": 3}, 7]')
    assert [type(row) for row in rows] == [ParsedDocument, ParseFailure]
    assert text_of(tmp_path, "b.json", b'{"a": {"b": [1, 2]}, "c": null}') == "a.b.0: 1\na.b.1: 2"


def test_rows_may_have_other_fields(tmp_path: Path) -> None:
    """A job names the fields of id, title and text."""
    options = ParseOptions(id_field="key", title_field="name", text_fields=("lead", "body"))
    [item] = parsed(tmp_path, "a.jsonl", b'{"key": "k", "name": "N", "lead": "one", "body": "two", "id": 5}', options)
    assert isinstance(item, ParsedDocument)
    document = item.document
    assert (document.document_id, document.title, document.text) == ("k", "N", "one\n\ntwo")
    assert document.metadata == {"id": 5}


def test_parquet_rows_are_documents(tmp_path: Path) -> None:
    """Columns become fields with their types; empty values are absent."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"id": ["a", "b"], "text": ["one", "two"], "year": [2021, None]})
    parquet.write_table(table, tmp_path / "made.parquet")
    items = parsed(tmp_path, "a.parquet", (tmp_path / "made.parquet").read_bytes())
    assert [one.document.metadata for one in items if isinstance(one, ParsedDocument)] == [{"year": 2021}, {}]


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.epub", "a.xlsx", "a.ods"])
def test_archive_of_something_else_is_a_failure_with_a_reason(tmp_path: Path, name: str) -> None:
    """A zip file with an Office name is no document."""
    [item] = parsed(tmp_path, name, packed({"other.txt": "text"}))
    assert isinstance(item, ParseFailure)
    assert item.reason
