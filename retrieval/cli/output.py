"""What commands print: tables for a person, one JSON object for a program, progress and notes on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PIPE_COLUMNS = 400  # where nobody looks, lines are not wrapped


def print_json(value: Any) -> None:
    """Prints one JSON object on standard output."""
    # Where the stream cannot hold every character JSON's own escapes keep the object whole.
    narrow = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    sys.stdout.write(json.dumps(value, ensure_ascii=narrow, indent=2, allow_nan=False, default=str) + "\n")


def console(*, stderr: bool = False) -> Console:
    """Returns a console that writes to the present stream, with colour only where a person looks."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else _PIPE_COLUMNS, highlight=False, emoji=False)


def show(*parts: RenderableType) -> None:
    """Prints what a person reads; brackets in a text are just brackets."""
    screen = console()
    for part in parts:
        screen.print(part, markup=False)


def note(text: str) -> None:
    """Prints a line beside the result, on standard error."""
    console(stderr=True).print(text, style="dim", markup=False)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | RenderableType]],
    *,
    title: str = "",
    right: Sequence[str] = (),
) -> RenderableType:
    """Returns a table; the columns named in `right` hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def pairs(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Returns names with their values, one a line."""
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 2))
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, Text(value))
    return made
