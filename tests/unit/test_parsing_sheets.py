"""Spreadsheets and presentations: what is shown of their cells, tables that say what their columns are, slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument, SourceItem
from tests.fakes.good_files import zipped

_SPACES = "http://schemas.openxmlformats.org"
_OFFICE = f"{_SPACES}/officeDocument/2006/relationships"
_BOOK = f'xmlns="{_SPACES}/spreadsheetml/2006/main" xmlns:r="{_OFFICE}"'
_SLIDE = f'xmlns:p="{_SPACES}/presentationml/2006/main" xmlns:a="{_SPACES}/drawingml/2006/main" xmlns:r="{_OFFICE}"'
_STYLES = (
    f'<styleSheet {_BOOK}><numFmts><numFmt numFmtId="164" formatCode="0.0\\ %;-0"/></numFmts><cellXfs>'
    '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="9"/><xf numFmtId="164"/>'
    "</cellXfs></styleSheet>"
)


def _parsed(folder: Path, name: str, content: bytes) -> SourceItem:
    path = folder / name
    path.write_bytes(content)
    [item] = parse_file(SourceFile(path, name, path.as_uri()))
    return item


def _relations(*related: tuple[str, str]) -> str:
    lines = (
        f'<Relationship Id="r{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(related, 1)
    )
    return f'<Relationships xmlns="{_SPACES}/package/2006/relationships">{"".join(lines)}</Relationships>'


def _workbook(sheets: Mapping[str, Sequence[Sequence[str]]], more: Mapping[str, str] | None = None) -> bytes:
    """Returns a workbook of sheets, each rows of the XML of cells; `{place}` in a cell is where it stands."""
    listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_SPACES}/package/2006/content-types"/>',
        "_rels/.rels": _relations(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f"<workbook {_BOOK}><sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            *(("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)), ("styles", "styles.xml")
        ),
        "xl/styles.xml": _STYLES,
        **(more or {}),
    }
    for number, rows in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/sheet{number}.xml"] = _sheet(rows)
    return zipped(parts)


def _sheet(rows: Sequence[Sequence[str]]) -> str:
    lines = (
        f'<row r="{n}">{"".join(cell.format(place=f"{chr(65 + at)}{n}") for at, cell in enumerate(row))}</row>'
        for n, row in enumerate(rows, 1)
    )
    return f"<worksheet {_BOOK}><sheetData>{''.join(lines)}</sheetData></worksheet>"


def _said(text: str) -> str:
    return f'<c r="{{place}}" t="inlineStr"><is><t>{text}</t></is></c>' if text else ""


def _number(value: object, style: int = 0, kind: str = "n") -> str:
    return f'<c r="{{place}}" s="{style}" t="{kind}"><f>A1</f><v>{value}</v></c>'


def test_values_are_shown_as_people_read_them(tmp_path: Path) -> None:
    """Whole numbers without a point, fractions without the error of binary ones, dates, truth, last results."""
    row = [_number(40), _number("0.30000000000000004"), _number(45292, 1), _number("45292.5", 2), _number(1, kind="b")]
    item = _parsed(tmp_path, "a.xlsx", _workbook({"S": [[_said(name) for name in "abcde"], row]}))
    assert isinstance(item, ParsedDocument)
    assert item.document.text.splitlines()[-1] == "| 40 | 0.3 | 2024-01-01 | 2024-01-01 12:00:00 | TRUE |"


def test_shares_are_shown_as_per_cent(tmp_path: Path) -> None:
    """Where a cell's format says so, with its decimals, wherever the sheet begins; text of that format is text."""
    rows = [["", _said("a"), _said("b"), _said("c")], ["", _number("0.15", 3), _number("0.1549", 4), _number("0.5")]]
    item = _parsed(tmp_path, "a.xlsx", _workbook({"One": [[]], "S": [[], *rows]}))
    assert isinstance(item, ParsedDocument)
    assert item.document.text == "# S\n\n| a | b | c |\n|---|---|---|\n| 15% | 15.5% | 0.5 |\n"


def test_long_sheets_repeat_their_header(tmp_path: Path) -> None:
    """Every table of a sheet says what its columns are, and no row is lost; what stands above is no header."""
    head = [[_said("Parts of 2024")], [_said("Part"), _said("Nm")]]
    rows = [[_said(f"V{number}"), _number(number)] for number in range(60)]
    item = _parsed(tmp_path, "a.xlsx", _workbook({"Torques": [*head, *rows], "Empty": [], "One": [[_said("x")]]}))
    assert isinstance(item, ParsedDocument)
    text = item.document.text
    assert text.startswith("# Torques\n\nParts of 2024\n\n| Part | Nm |\n|---|---|\n| V0 | 0 |\n")
    assert text.count("| Part | Nm |") == 3
    assert all(text.count(f"| V{number} | {number} |") == 1 for number in range(60))
    assert text.endswith("# One\n\n| x |\n|---|\n")


def test_macros_of_workbooks_and_decks_are_named(tmp_path: Path) -> None:
    """They are not read, and a warning says so."""
    book = _workbook({"S": [[_said("x")]]}, {"xl/vbaProject.bin": "x"})
    deck = _deck([_shape("x")], {"ppt/vbaProject.bin": "x"})
    for name, content in (("a.xlsm", book), ("a.pptm", deck)):
        item = _parsed(tmp_path, name, content)
        assert isinstance(item, ParsedDocument)
        assert item.warnings == ("macros were not read",)


def _shape(text: str, kind: str = "") -> str:
    place = f'<p:ph type="{kind}"/>' if kind else ""
    body = f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>"
    return f"<p:sp><p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr>{body}</p:sp>"


def _page(kind: str, *shapes: str) -> str:
    return f"<p:{kind} {_SLIDE}><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:{kind}>"


def _deck(shapes: Sequence[str], more: Mapping[str, str]) -> bytes:
    """Returns a presentation of one slide."""
    ids = '<p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst>'
    return zipped(
        {
            "ppt/presentation.xml": f"<p:presentation {_SLIDE}>{ids}</p:presentation>",
            "ppt/_rels/presentation.xml.rels": _relations(("slide", "slides/slide1.xml")),
            "ppt/slides/slide1.xml": _page("sld", *shapes),
            **more,
        }
    )


def test_slides_hold_groups_tables_diagrams_and_notes(tmp_path: Path) -> None:
    """All of their text once: what is there twice for older programs is read from the first."""
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>".format
    table = "".join(f"<a:tr>{''.join(map(cell, row))}</a:tr>" for row in (("Part", "Nm"), ("V7", "40")))
    space = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    both = f"<m:Choice>{_shape('twice')}</m:Choice><m:Fallback>{_shape('twice')}</m:Fallback>"
    shapes = [
        f"<p:grpSp>{_shape('grouped')}</p:grpSp>",
        f"<p:graphicFrame><a:tbl>{table}</a:tbl></p:graphicFrame>",
        f"<m:AlternateContent xmlns:m='{space}'>{both}</m:AlternateContent>",
        _shape("Title", "ctrTitle"),
        _shape("7", "sldNum"),
    ]
    more = {
        "ppt/slides/_rels/slide1.xml.rels": _relations(
            ("notesSlide", "../notesSlides/n.xml"), ("diagramData", "../diagrams/d.xml")
        ),
        "ppt/notesSlides/n.xml": _page("notes", _shape("say this", "body"), _shape("7", "sldNum")),
        "ppt/diagrams/d.xml": f"<d {_SLIDE}><a:p><a:r><a:t>drawn</a:t></a:r></a:p></d>",
    }
    item = _parsed(tmp_path, "a.pptx", _deck(shapes, more))
    assert isinstance(item, ParsedDocument)
    assert item.document.text == (
        "# Title\n\ngrouped\n\n| Part | Nm |\n|---|---|\n| V7 | 40 |\n\ntwice\n\ndrawn\n\n## Notes\n\nsay this\n"
    )
