"""Numbers as the paper shows them, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

_BYTES = ("B", "KB", "MB", "GB", "TB", "PB")
_TIMES = ((86_400.0 * 3, 86_400.0, "days"), (7_200.0, 3_600.0, "h"), (120.0, 60.0, "min"), (1.0, 1.0, "s"))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table."""
    lines = ["| " + " | ".join(row) + " |" for row in [columns, ["---"] * len(columns), *rows]]
    return "\n".join(lines)


def digits(value: float) -> str:
    """Returns a number with three significant digits, thousands apart."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def in_bytes(value: float) -> str:
    """Returns bytes in steps of a thousand."""
    step = 0
    while abs(value) >= 999.5 and step < len(_BYTES) - 1:
        value, step = value / 1_000, step + 1
    return f"{digits(value)} {_BYTES[step]}"


def in_time(seconds: float) -> str:
    """Returns a time in the unit that a person would take."""
    for least, unit, name in _TIMES:
        if seconds >= least:
            return f"{digits(seconds / unit)} {name}"
    return f"{digits(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{digits(seconds * 1e6)} us"


def size(chunks: float) -> str:
    """Returns a power of ten as one, and another number as it is."""
    text = f"{chunks:.0f}"
    return f"10^{len(text) - 1}" if chunks >= 1e5 and text.strip("0") == "1" else f"{chunks:,.0f}"
