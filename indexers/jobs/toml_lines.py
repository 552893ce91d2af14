"""Says in which line of a TOML text each key stands, which tomllib does not.

The text was read by tomllib before, so what is seen here is known to be well-formed: the scanner only has to find keys,
tables and the ends of values. A property test compares it with tomllib.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:""?)?'
    r"|'''.*?'''(?:''?)?"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'",
    re.DOTALL,
)


def lines_of(text: str) -> Mapping[Path, int]:
    """Returns the line, from 1, of each key, table, and element of an array, by its path.

    A table that is written in several places has the line of the first. The text must be what tomllib can read.
    """
    return _Scanner(text.replace("\r\n", "\n")).scan()


class _Scanner:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0  # up to where the line feeds are counted
        self._lines: dict[Path, int] = {}
        self._elements: dict[Path, int] = {}  # arrays of tables, with the number of their elements so far

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        while self._next():
            if self._text.startswith("[[", self._at):
                table = self._header("]]", opens=True)
            elif self._text[self._at] == "[":
                table = self._header("]", opens=False)
            else:
                self._pair(table)
        return self._lines

    def _header(self, end: str, *, opens: bool) -> Path:
        line = self._here()
        self._at += len(end)
        keys = self._dotted_key()
        self._next()
        self._at += len(end)
        path: Path = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            self._lines.setdefault(path, line)
            if opens and position == len(keys) - 1:
                self._elements[path] = self._elements.get(path, 0) + 1
            if path in self._elements:
                path = (*path, self._elements[path] - 1)
                self._lines.setdefault(path, line)
        return path

    def _pair(self, table: Path) -> None:
        line = self._here()
        path = table
        for key in self._dotted_key():
            path = (*path, key)
            self._lines.setdefault(path, line)
        self._next()
        self._at += 1  # the sign =
        self._value(path)

    def _value(self, path: Path) -> None:
        self._next()
        first = self._text[self._at]
        if first == "{":
            self._inside("}", path)
        elif first == "[":
            self._inside("]", path)
        elif string := _STRING.match(self._text, self._at):
            self._at = string.end()
        elif scalar := _SCALAR.match(self._text, self._at):
            self._at = scalar.end()

    def _inside(self, end: str, path: Path) -> None:
        """Goes through an inline table or an array."""
        self._at += 1
        position = 0
        while self._next() and self._text[self._at] != end:
            if self._text[self._at] == ",":
                self._at += 1
            elif end == "}":
                self._pair(path)
            else:
                self._lines.setdefault((*path, position), self._here())
                self._value((*path, position))
                position += 1
        self._at += 1

    def _dotted_key(self) -> list[str]:
        keys = []
        while True:
            self._next()
            keys.append(self._key())
            self._next()
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _key(self) -> str:
        found = _BARE_KEY.match(self._text, self._at)
        if found is None:
            found = _STRING.match(self._text, self._at)
        if found is None:
            raise ValueError(f"no key in line {self._here()}: the text is no TOML")
        self._at = found.end()
        return next(iter(tomllib.loads(f"{found[0]} = 0")))

    def _next(self) -> bool:
        """Goes to where something stands again; False at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at < len(self._text)

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line
