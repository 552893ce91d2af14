"""Passages for a tool, from files: lines of JSON with `text` and perhaps `title`, or one passage a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from retrieval.cli.exits import WrongUse


def read_passages(files: Sequence[Path]) -> list[str]:
    """Returns the passages of all files, the title before the text.

    Raises:
        WrongUse: a file cannot be read, or a line of it has no text.
    """
    found: list[str] = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as cause:
            raise WrongUse(f"{file} cannot be read ({cause}); give a UTF-8 file with a passage a line") from None
        found += [
            _passage(line, f"{file}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()
        ]
    return found


def _passage(line: str, place: str) -> str:
    if not line.startswith("{"):
        return line.strip()
    try:
        row = json.loads(line)
        return f"{row.get('title') or ''}\n{row['text']}".strip()
    except (ValueError, KeyError, AttributeError):
        raise WrongUse(f"{place} is no JSON object with a text; repair or remove it") from None
