"""What a model's card says of its licence: the header between two lines of dashes at the top of its README."""

from __future__ import annotations

import re
from pathlib import Path

from encoders.catalog.record import CARD_FILE

_HEADER = re.compile(r"\A---\r?\n(.*?)\r?\n---\s*(?:\n|\Z)", re.DOTALL)
_LICENCE = re.compile(r"^(license_name|license)[ \t]*:[ \t]*(.*?)[ \t]*(?:#.*)?$", re.MULTILINE)
_LIST_ITEM = re.compile(r"^license[ \t]*:[ \t]*\r?\n((?:[ \t]*-[ \t]*\S.*\r?\n?)+)", re.MULTILINE)
_LARGEST = 1 << 20


def licence_of(folder: Path) -> str:
    """Returns the licence that the card in a folder names, in lower case; "" when there is no card or no licence."""
    path = folder / CARD_FILE
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as opened:
        header = _HEADER.match(opened.read(_LARGEST))
    return "" if header is None else _licence(header[1] + "\n")


def _licence(header: str) -> str:
    listed = _LIST_ITEM.search(header)
    if listed:
        return ", ".join(_plain(line.strip().removeprefix("-")) for line in listed[1].splitlines())
    named = {name: _plain(value) for name, value in _LICENCE.findall(header)}
    # "other" stands for a licence of the model's own, which then has a name.
    licence = named.get("license", "")
    return named.get("license_name", licence) if licence in {"", "other"} else licence


def _plain(value: str) -> str:
    return ", ".join(part.strip().strip("\"'").lower() for part in value.strip().strip("[]").split(",") if part.strip())
