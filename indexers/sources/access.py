"""What a source may reach: whoever runs a job on his own machine may read all that he can, one who submits it may not.

A submitted job names files, addresses and secrets of the server. Without bounds a tenant could have
it read anything that the server can read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from indexers.errors import ItemUnreadable


@dataclass(frozen=True, slots=True)
class SourceAccess:
    """The bounds of one job's sources; None means no bound."""

    file_roots: tuple[Path, ...] | None = None  # folders below which files, repositories and databases may be read
    secrets: frozenset[str] | None = None  # references that may be resolved, as in `env:NAME`
    private_addresses: bool = True  # whether a job may ask for `allow_private`

    def path(self, path: Path) -> Path:
        """Returns the path with all links resolved.

        Raises:
            ItemUnreadable: it lies outside the roots.
        """
        resolved = path.resolve()
        if self.file_roots is None or any(resolved.is_relative_to(root.resolve()) for root in self.file_roots):
            return resolved
        reason = "lies outside the folders that jobs may read; move it, or have jobs.file_roots name its folder"
        raise ItemUnreadable(str(path), reason, "forbidden")

    def secret(self, reference: str) -> str:
        """Returns the secret behind `env:NAME` or `file:/path`, without a line feed at its end; empty for an empty one.

        Raises:
            ItemUnreadable: the reference is not allowed, or nothing is there.
        """
        if not reference:
            return ""
        if self.secrets is not None and reference not in self.secrets:
            raise ItemUnreadable(reference, "is no secret that jobs may use; have jobs.secrets name it", "forbidden")
        kind, _, place = reference.partition(":")
        if kind == "env":
            value = os.environ.get(place)
            if value is None:
                raise ItemUnreadable(reference, "the environment variable is not set", "no_secret")
            return value
        try:
            return Path(place).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ItemUnreadable(reference, f"the file cannot be read: {error}", "no_secret") from error

    def private(self, *, asked: bool) -> bool:
        """Returns whether addresses of private networks may be read, where a job asks for it or does not."""
        return asked and self.private_addresses
