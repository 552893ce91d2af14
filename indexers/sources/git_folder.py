"""A repository on this machine, read where it is. Where access is bounded, nothing in it may lead out of the bounds."""

from __future__ import annotations

import os
from pathlib import Path

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.sources.access import SourceAccess
from indexers.sources.naming import shown


def git_folder(path: Path, access: SourceAccess) -> Path:
    """Returns the folder of Git's own files for a checkout or a bare repository.

    Raises:
        SourceUnavailable: there is no repository.
        ItemUnreadable: it lies outside the bounds, or borrows what does.
    """
    path = access.path(path)
    inside = path / ".git"
    try:
        if inside.is_file():  # a checkout whose files of Git's are elsewhere
            place = inside.read_text(encoding="utf-8", errors="surrogateescape").removeprefix("gitdir:").strip()
            found = access.path(path / place)
        else:
            found = access.path(inside if inside.is_dir() else path)
        shared = found / "commondir"
        common = access.path(found / shared.read_text(encoding="utf-8").strip()) if shared.is_file() else found
        if not ((found / "HEAD").is_file() and (common / "objects").is_dir()):
            raise SourceUnavailable(shown(str(path)), "is no Git repository")
        if access.file_roots is not None:
            _check_contained({found, common})
    except OSError as error:
        raise SourceUnavailable(shown(str(path)), f"cannot be read: {error.strerror}") from error
    return found


def _check_contained(folders: set[Path]) -> None:
    """Refuses links, and objects that are borrowed from other repositories."""
    for top in folders:
        for folder, below, files in os.walk(top):
            if any(Path(folder, name).is_symlink() for name in (*below, *files)):
                raise ItemUnreadable(shown(folder), "holds links, which could lead anywhere", "forbidden")
        if (top / "objects" / "info" / "alternates").exists():
            reason = "borrows objects of another repository; run `git repack -a` and remove its alternates"
            raise ItemUnreadable(shown(str(top)), reason, "forbidden")
