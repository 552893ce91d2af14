"""Globs over names with slashes: `*` and `?` stay within a folder, `**` stands for any number of folders, also none.

Matched part by part and with one step back at most, so that no pattern takes long, whoever wrote it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

_Part: TypeAlias = re.Pattern[str] | None  # None is `**`

_WILD = re.compile(r"[*?[]")


class Glob:
    """One pattern, as in `docs/**/*.md`. A slash at its end stands for all that is below."""

    def __init__(self, pattern: str) -> None:
        pattern = pattern.strip("/") + ("/**" if pattern.endswith("/") else "")
        self._parts: list[_Part] = [
            None if part == "**" else re.compile(fnmatch.translate(part)) for part in pattern.split("/") if part
        ]

    def matches(self, name: str) -> bool:
        """Returns whether the whole name matches."""
        return _match(self._parts, name.split("/"))


class Selection:
    """Which names are read: those that an include matches, unless an exclude matches them or a folder they are in."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str] = (), *, hidden: bool = False) -> None:
        """With `hidden`, names that start with a dot are read too."""
        self._include = [Glob(pattern) for pattern in include]
        self._exclude = [Glob(pattern) for pattern in exclude]
        self._hidden = hidden

    def enters(self, folder: str) -> bool:
        """Returns whether anything in the folder may be read; its own folders are known to be entered."""
        if not self._hidden and folder.rpartition("/")[2].startswith("."):
            return False
        return not any(glob.matches(folder) for glob in self._exclude)

    def takes(self, name: str) -> bool:
        """Returns whether the file is read, where its folder is entered."""
        return self.enters(name) and any(glob.matches(name) for glob in self._include)

    def reads(self, name: str) -> bool:
        """Returns whether the file is read, its folders looked at too."""
        parts = name.split("/")
        folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
        return all(self.enters(folder) for folder in folders) and self.takes(name)


def split_glob(path: str) -> tuple[str, str]:
    """Splits a path before the first part with a wildcard; the glob is empty when there is none."""
    parts = path.split("/")
    wild = next((at for at, part in enumerate(parts) if _WILD.search(part)), len(parts))
    return "/".join(parts[:wild]), "/".join(parts[wild:])


def _match(pattern: Sequence[_Part], name: Sequence[str]) -> bool:
    """Matches greedily; only the last `**` ever needs to take one more part."""
    at, seen, star, resume = 0, 0, -1, 0
    while seen < len(name):
        part = pattern[at] if at < len(pattern) else _END
        if part is None:
            star, resume = at, seen
            at += 1
        elif part.match(name[seen]):
            at, seen = at + 1, seen + 1
        elif star >= 0:
            resume += 1
            at, seen = star + 1, resume
        else:
            return False
    return all(part is None for part in pattern[at:])


_END = re.compile(r"(?!)")
