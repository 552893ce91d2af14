"""A small good file of every suffix, made by hand, for others to break."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec

from tests.fakes.pdf import pdf_bytes

_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{}</Types>'
_RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SPACES = "http://schemas.openxmlformats.org"
_MAIN = "application/vnd.openxmlformats-officedocument"


def good_files() -> dict[str, bytes]:
    """Returns file contents by name."""
    files = {
        "good.md": b"---\ntitle: P\n---\n\n# Pumps\n\n- one\n- two\n\n|a|b|\n|---|---|\n|1|2|\n\n```py\nx = 1\n```\n",
        "good.rst": b"Pumps\n=====\n\nA *pump* moves `water`_.\n\n.. note:: Seal.\n\n.. _water: https://example.org\n",
        "good.txt": "Pumps move water.\fSecond page: caf\u00e9.\n".encode(),
        "good.html": b"<!doctype html><title>P</title><h1>Pumps</h1><p>Move <b>water</b><table><tr><td>1<td>2</table>",
        "good.pdf": pdf_bytes(["Pumps move water.", "Second page."]),
        "good.jsonl": b'{"id": "1", "title": "P", "text": "Pumps."}\n{"id": "2", "text": "Seals.", "year": 2020}\n',
        "good.csv": b'id,title,text\n1,P,Pumps move water.\n2,S,"Seals, and\nmore"\n',
        "good.json": json.dumps({"title": "Pumps", "parts": [{"name": "seal", "note": "Replace it."}]}).encode(),
        "good.ipynb": _notebook(),
        "good.eml": _mail(),
        "good.py": b'"""Pumps."""\n\n\ndef pump(water):\n    """Moves."""\n    return [water for _ in range(3)]\n',
        "good.docx": docx("<w:p><w:r><w:t>Pumps move water.</w:t></w:r></w:p>"),
        "good.pptx": pptx("Pumps move water."),
        "good.xlsx": xlsx("Pumps move water."),
        "good.epub": epub("<p>Pumps move water.</p>"),
    }
    if find_spec("pyarrow"):
        files["good.parquet"] = _parquet()
    return files


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Returns a zip archive of these parts."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)  # always of the same date
    return content.getvalue()


def docx(body: str, parts: Mapping[str, str | bytes] | None = None, prolog: str = "") -> bytes:
    """Returns a Word document of this body, with more parts and a prolog before its root."""
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    document = f'{prolog}<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>'
    return zipped(_office("word/document.xml", document, f"{_MAIN}.wordprocessingml.document.main+xml", parts or {}))


def pptx(text: str) -> bytes:
    """Returns a presentation of one slide."""
    spaces = f'xmlns:p="{_SPACES}/presentationml/2006/main" xmlns:a="{_SPACES}/drawingml/2006/main" xmlns:r="{_OFFICE}"'
    slides = '<p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst>'
    deck = f"<p:presentation {spaces}>{slides}</p:presentation>"
    body = f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>"
    shape = f"<p:sp><p:nvSpPr><p:cNvPr id='2' name='t'/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>{body}</p:sp>"
    slide = f"<p:sld {spaces}><p:cSld><p:spTree>{shape}</p:spTree></p:cSld></p:sld>"
    more = {"ppt/slides/slide1.xml": slide, "ppt/_rels/presentation.xml.rels": _relation("slide", "slides/slide1.xml")}
    return zipped(_office("ppt/presentation.xml", deck, f"{_MAIN}.presentationml.presentation.main+xml", more))


def xlsx(text: str) -> bytes:
    """Returns a workbook of one sheet."""
    spaces = f'xmlns="{_SPACES}/spreadsheetml/2006/main" xmlns:r="{_OFFICE}"'
    book = f'<workbook {spaces}><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>'
    rows = "".join(f'<row r="{row}">{_cell(f"A{row}", value)}</row>' for row, value in ((1, "Name"), (2, text)))
    sheet = f"<worksheet {spaces}><sheetData>{rows}</sheetData></worksheet>"
    path = "worksheets/sheet1.xml"
    more = {f"xl/{path}": sheet, "xl/_rels/workbook.xml.rels": _relation("worksheet", path)}
    return zipped(_office("xl/workbook.xml", book, f"{_MAIN}.spreadsheetml.sheet.main+xml", more))


def _cell(place: str, value: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def epub(body: str) -> bytes:
    """Returns a book of one chapter."""
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Pumps</dc:title></metadata>'
        '<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="c"/></spine></package>'
    )
    chapter = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>C</title></head><body>{body}</body></html>'
    parts = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "book.opf": package}
    return zipped({**parts, "c.xhtml": chapter})


def _office(path: str, part: str, kind: str, more: Mapping[str, str | bytes]) -> dict[str, str | bytes]:
    defaults = (
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
    )
    override = f'<Override PartName="/{path}" ContentType="{kind}"/>'
    types = _TYPES.format(defaults + override)
    return {"[Content_Types].xml": types, "_rels/.rels": _relation("officeDocument", path), path: part, **more}


def _relation(kind: str, target: str) -> str:
    return _RELATIONS.format(f'<Relationship Id="r1" Type="{_OFFICE}/{kind}" Target="{target}"/>')


def _notebook() -> bytes:
    output = {"output_type": "stream", "name": "stdout", "text": ["42\n"]}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Pumps\n", "Move water."]},
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "print(42)", "outputs": [output]},
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def _mail() -> bytes:
    head = b"From: a@example.org\r\nTo: b@example.org\r\nSubject: =?utf-8?q?Pumps?=\r\nMIME-Version: 1.0\r\n"
    head += b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    text = b"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nPumps move water.\r\n"
    page = b"--b\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\nPHA+V2F0ZXI8L3A+\r\n--b--\r\n"
    return head + text + page


def _parquet() -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    content = io.BytesIO()
    parquet.write_table(pa.table({"id": ["1", "2"], "text": ["Pumps move water.", "Seals."]}), content)
    return content.getvalue()
