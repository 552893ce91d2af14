"""Prints the tables of the tools."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

Cell = str | int | float | None


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], digits: int = 3) -> None:
    """Prints a table on standard output, numbers to the right."""
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        numbers = all(not isinstance(row[place], str) for row in rows)
        table.add_column(column, justify="right" if numbers and rows else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(_text(cell, digits) for cell in row))
    Console().print(table)


def say(text: str) -> None:
    """Prints a line on standard error, so that standard output holds results only."""
    Console(stderr=True, highlight=False).print(text, markup=False)


def _text(cell: Cell, digits: int) -> str:
    if cell is None:
        return "-"
    return f"{cell:.{digits}f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell
