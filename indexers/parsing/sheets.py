"""Spreadsheets (XLSX, XLSM, XLS, ODS) to canonical Markdown: a heading a sheet, its rows as tables.

Long sheets become several tables that each repeat the header, so that a chunk says what its columns are. Formulas are
their last results; macros are never run or read. python-calamine reads all four formats in Rust, without entities of
XML; openpyxl reads one of them twenty times slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import TypeAlias

from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum

from indexers.errors import ParseFailed
from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.office_parts import macro_warning
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.parsing.sheet_formats import Percents, as_percent, percent_cells
from indexers.sandbox.archives import open_archive
from indexers.types import Document, TextFormat

_ROWS_A_TABLE = 25
_MAX_CELLS = 2_000_000
_ZIPPED = b"PK"

Cell: TypeAlias = "str | int | float | bool | date | datetime | time | timedelta"


def parse_sheets(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a spreadsheet.

    Raises:
        ParseFailed: no such document, encrypted, made to do harm, too large, or without text.
    """
    content = read_bounded(file, options)
    macros: tuple[str, ...] = ()
    percents: Mapping[str, Percents] = {}
    if content.startswith(_ZIPPED):
        with open_archive(content, file.name) as archive:
            archive.verify()
            macros, percents = macro_warning(archive), percent_cells(archive, file.name)
    writer, seen = MarkdownWriter(), 0
    for name, rows in _sheets(file, content, percents):
        seen += sum(map(len, rows))
        if seen > _MAX_CELLS:
            raise ParseFailed(file.name, f"has more than {_MAX_CELLS} cells; split it, or save it as CSV", "too_large")
        _write(writer, name, rows)
    text, warnings = clean(writer.text())
    require_text(text, file.name, options)
    document = Document(file.name, file.stem, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, warnings + macros)


def _sheets(
    file: SourceFile, content: bytes, percents: Mapping[str, Percents]
) -> Iterator[tuple[str, list[list[str]]]]:
    try:
        workbook = CalamineWorkbook.from_filelike(BytesIO(content))
        for name in (sheet.name for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet):
            sheet = workbook.get_sheet_by_name(name)
            rows = sheet.to_python(skip_empty_area=True)
            yield name, list(_shown_rows(rows, sheet.start or (0, 0), percents.get(name, {})))
    except (CalamineError, OSError, ValueError, OverflowError) as error:
        kind = "encrypted" if "password" in str(error).lower() else "unparsable"
        raise ParseFailed(file.name, f"cannot be read as a spreadsheet: {str(error)[:200]}", kind) from error


def _shown_rows(rows: Sequence[Sequence[Cell]], start: tuple[int, int], percents: Percents) -> Iterator[list[str]]:
    """Yields the rows that hold something; they begin at a row and column from 0."""
    for at, row in enumerate(rows, start[0]):
        cells = [_shown(cell, percents.get((at, column))) for column, cell in enumerate(row, start[1])]
        if any(cells):
            yield cells


def _write(writer: MarkdownWriter, name: str, rows: Sequence[list[str]]) -> None:
    if not rows:
        return
    writer.heading(1, name)
    above = _rows_above(rows)
    for row in rows[:above]:
        writer.paragraph(" ".join(filter(None, row)))
    header, body = rows[above], rows[above + 1 :]
    for start in range(0, max(len(body), 1), _ROWS_A_TABLE):
        writer.table([header, *body[start : start + _ROWS_A_TABLE]])


def _rows_above(rows: Sequence[list[str]]) -> int:
    """Counts the rows above the header: titles and remarks of one cell, above a row of several."""
    several = (number for number, row in enumerate(rows) if sum(map(bool, row)) > 1)
    return next(several, 0)


def _shown(cell: Cell, decimals: int | None) -> str:
    """Returns a value as people read it: whole numbers without a point, dates in ISO 8601, shares as per cent."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float) and decimals is not None:
        return as_percent(cell, decimals)
    if isinstance(cell, float):
        # Fifteen digits are what a spreadsheet keeps; the rest is the error of binary fractions.
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else f"{cell:.15g}"
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ", "seconds")
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)
