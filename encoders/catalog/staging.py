"""Writing model files so that nothing half done is ever seen: into a hidden folder beside the place, then moved in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from encoders.catalog.record import RECORD_FILE
from encoders.errors import ModelNotWritten


@contextmanager
def staged(target: Path, model: str, *, whole: bool = False) -> Iterator[Path]:
    """Gives an empty folder; when the block ends well its files become those of `target`.

    A target that is there keeps its other files, unless it is replaced as a whole. When the block fails, or the disk
    is full, the target stays as it was.

    Raises:
        ModelNotWritten: no space is left, or the place cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=target.parent, prefix=f".{target.name}.", ignore_cleanup_errors=True
        ) as place:
            fresh = Path(place) / "model"
            fresh.mkdir()
            yield fresh
            _move_in(fresh, target, Path(place) / "former", whole)
    except OSError as cause:
        raise ModelNotWritten(model, str(target), cause.strerror or str(cause)) from cause


def _move_in(fresh: Path, target: Path, former: Path, whole: bool) -> None:
    if not target.exists():
        fresh.rename(target)
    elif whole:
        target.rename(former)
        fresh.rename(target)
    else:
        # The record goes last: files that it vouches for are then all there.
        for path in sorted(fresh.rglob("*"), key=lambda path: path.name == RECORD_FILE):
            place = target / path.relative_to(fresh)
            if path.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                path.replace(place)


def copy_into(folder: Path, target: Path, names: list[str]) -> None:
    """Copies those files of a folder that are there; links of a cache become files."""
    for name in names:
        if (folder / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, target / name)
