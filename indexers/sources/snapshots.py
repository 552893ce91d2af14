"""Copies of local files for jobs with bounds: what is checked is what is opened, not the path that led to it."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from indexers.errors import ItemUnreadable
from indexers.sources.access import SourceAccess

_BLOCK_BYTES = 1024 * 1024


@contextmanager
def snapshot(path: Path, name: str, access: SourceAccess, scratch: Path) -> Iterator[Path]:
    """Copies the file into the scratch folder, where it stays while the block runs.

    Raises:
        ItemUnreadable: what was opened lies outside the bounds, or is no regular file.
        OSError: it cannot be read.
    """
    with temporary(name, scratch) as copy:
        # Without blocking: a pipe in its place would be waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise ItemUnreadable(name, "is no regular file", "forbidden")
            access.path(_opened_path(opened.fileno(), path))
            with copy.open("wb") as target:
                shutil.copyfileobj(opened, target, _BLOCK_BYTES)
        yield copy


@contextmanager
def temporary(name: str, scratch: Path) -> Iterator[Path]:
    """Gives a path in the scratch folder for a file of that name, with its suffix, and removes it at the end."""
    scratch.mkdir(parents=True, exist_ok=True)
    handle, place = tempfile.mkstemp(prefix="item-", suffix=PurePosixPath(name).suffix[:32], dir=scratch)
    os.close(handle)
    path = Path(place)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _opened_path(descriptor: int, path: Path) -> Path:
    """Returns where an open file really lies; where the system does not say, where its path leads now."""
    link = Path(f"/proc/self/fd/{descriptor}")
    return link.readlink() if link.exists() else path.resolve()
