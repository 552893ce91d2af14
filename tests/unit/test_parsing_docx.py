"""Lists, hidden text and cells of Word documents."""

from __future__ import annotations

from pathlib import Path

from indexers.parsing.dispatch import parse_file
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument
from tests.fakes.good_files import docx

_SPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def _read(folder: Path, body: str, **parts: str) -> ParsedDocument:
    path = folder / "a.docx"
    named = {f"word/{name}.xml": f"<w:{name} {_SPACE}>{part}</w:{name}>" for name, part in parts.items()}
    path.write_bytes(docx(body, named))
    [item] = parse_file(SourceFile(path, path.name, path.as_uri()))
    assert isinstance(item, ParsedDocument), item
    return item


def _item(text: str, listed: int | str, level: int = 0) -> str:
    place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{listed}"/></w:numPr>'
    return f"<w:p><w:pPr>{place}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def _paragraph(text: str, style: str = "") -> str:
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{named}<w:r><w:t>{text}</w:t></w:r></w:p>"


def _level(level: int, kind: str, start: int | str = 1) -> str:
    return f'<w:lvl w:ilvl="{level}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/></w:lvl>'


_NUMBERING = (
    f'<w:abstractNum w:abstractNumId="7">{_level(0, "decimal")}{_level(1, "lowerLetter", 3)}{_level(2, "bullet")}'
    '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="7"/></w:num>'
)


def test_numbered_items_are_counted(tmp_path: Path) -> None:
    """Each list by itself and on after text between its items; deeper levels begin anew, from the number they say."""
    body = (
        _item("one", 1) + _item("a", 1, 1) + _item("b", 1, 1) + _item("two", 1) + _item("c", 1, 1) + _paragraph("Text")
    )
    body += _item("three", 1) + _item("other", 2)
    assert _read(tmp_path, body, numbering=_NUMBERING).document.text == (
        "1. one\n   3. a\n   4. b\n2. two\n   3. c\n\nText\n\n3. three\n1. other\n"
    )


def test_items_without_a_format_have_bullets(tmp_path: Path) -> None:
    """So do those of lists that the document does not describe, and levels that nothing leads to."""
    body = _item("a", 9, 5) + _item("b", "x") + "<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>" + _item("c", 1, 2)
    assert _read(tmp_path, body, numbering=_NUMBERING).document.text == "- a\n- b\n\n- c\n"


def test_styles_make_items(tmp_path: Path) -> None:
    """A paragraph of a list's style is an item, unless it says that it belongs to no list."""
    styles = '<w:style w:styleId="L"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    none = (
        '<w:p><w:pPr><w:pStyle w:val="L"/><w:numPr><w:numId w:val="0"/></w:numPr></w:pPr><w:r><w:t>no</w:t></w:r></w:p>'
    )
    body = _paragraph("yes", "L") + none
    assert _read(tmp_path, body, styles=styles, numbering=_NUMBERING).document.text == "1. yes\n\nno\n"


def test_hidden_text_is_left_out(tmp_path: Path) -> None:
    """What Word does not show is not read, what is only marked as shown is."""
    run = "<w:r><w:rPr><w:vanish{}/></w:rPr><w:t>{}</w:t></w:r>".format
    body = run("", "HID-1") + run(' w:val="0"', "SEEN-2")
    assert _read(tmp_path, f"<w:p>{body}</w:p>").document.text == "SEEN-2\n"


def test_cells_hold_what_is_inside_them(tmp_path: Path) -> None:
    """Tables and boxes in a cell once each, deleted text not; a cell over several columns leaves room."""
    inner = f"<w:tbl><w:tr><w:tc>{_paragraph('in')}</w:tc></w:tr></w:tbl>"
    box = f"<w:txbxContent>{_paragraph('box')}</w:txbxContent>"
    space = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    both = f"<a:Choice>{box}</a:Choice><a:Fallback>{box}</a:Fallback>"
    both = f"<a:AlternateContent xmlns:a='{space}'>{both}</a:AlternateContent>"
    wide = (
        f'<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{_paragraph("wide")}{inner}<w:p><w:r>{both}</w:r></w:p></w:tc>'
    )
    rows = f"<w:tr>{wide}</w:tr><w:tr><w:tc>{_paragraph('1')}</w:tc><w:tc>{_paragraph('2')}</w:tc></w:tr>"
    text = _read(tmp_path, f"<w:tbl>{rows}</w:tbl>").document.text
    assert text == "| wide in box |  |\n|---|---|\n| 1 | 2 |\n"


def test_macros_are_named(tmp_path: Path) -> None:
    """They are not read, and a warning says so."""
    path = tmp_path / "a.docm"
    path.write_bytes(docx(_paragraph("Text"), {"word/vbaProject.bin": b"x"}))
    [item] = parse_file(SourceFile(path, path.name, path.as_uri()))
    assert isinstance(item, ParsedDocument)
    assert item.warnings == ("macros were not read",)
