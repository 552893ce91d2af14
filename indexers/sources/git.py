"""Files of a Git repository at a branch, tag or commit, from a bare copy in the job's own folder.

Each fingerprint is the blob id, so an unchanged file is never read. dulwich (Apache-2.0) speaks the protocols in
this process: the `git` program would read the user's configuration, hooks and credential helpers.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from indexers.errors import ItemGone, ItemUnreadable, JobError, SourceUnavailable
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.globs import Selection
from indexers.sources.naming import shown_bytes
from indexers.sources.snapshots import temporary
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import GitSource as GitSpec

_COPY = "repository.git"
_LFS = b"version https://git-lfs.github.com/spec/"
_MAX_BLOB_BYTES = 512 * 1024 * 1024
_REMOTE = frozenset({"http", "https", "ssh", "git"})


class GitSource:
    """The files of one repository at one reference."""

    def __init__(self, spec: GitSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> None:
        """Checks what may be read; nothing is fetched yet.

        Raises:
            ItemUnreadable: the repository may not be read, or the password is not there.
        """
        self._spec = spec
        self._scratch = scratch
        self._selection = Selection(spec.include, spec.exclude)
        self._password = access.secret(spec.password_ref)
        self._url = spec.url
        parts = urlsplit(spec.url)
        if parts.scheme in _REMOTE:
            if parts.password:
                raise ItemUnreadable("source.url", "holds a password; use password_ref", "forbidden")
            self._guard: AddressGuard | None = AddressGuard(access.private(asked=spec.allow_private))
            self._guard.resolve(parts.hostname or "", parts.port or 443)
        elif "://" in spec.url or "::" in spec.url:
            raise ItemUnreadable(spec.url, "is no address that repositories are read from", "forbidden")
        else:
            self._guard = None
            self._url = str(access.path(base_folder / spec.url))
        self._repository: Any = None
        self._entries: dict[str, bytes] = {}

    @property
    def complete(self) -> bool:
        """True: each scan comes by everything."""
        return True

    def scan(self) -> Iterator[Scanned]:
        """Fetches, and yields the files by name.

        Raises:
            SourceUnavailable: the repository cannot be reached, or has no such reference.
        """
        repository = self._fetched()
        self._entries = {}
        for path, mode, blob in _walk(repository, self._tree(repository), b""):
            name = shown_bytes(path)
            if not self._selection.reads(name):
                continue
            if stat.S_ISLNK(mode) or stat.S_IFMT(mode) == 0o160000:
                yield SkippedFile(name, "is a link" if stat.S_ISLNK(mode) else "is a submodule")
                continue
            self._entries[name] = blob
            yield ItemRef(self._uri(name), name, f"blob:{blob.decode('ascii')}", 0)

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Writes the blob to a file.

        Raises:
            ItemGone: the repository does not have it any more.
            ItemUnreadable: its content is elsewhere (LFS), or is too large.
        """
        repository = self._repository or self._fetched()
        try:
            content: bytes = repository[ref.fingerprint.removeprefix("blob:").encode("ascii")].data
        except KeyError:
            raise ItemGone(ref.name, "is no longer in the repository") from None
        if content.startswith(_LFS):
            raise ItemUnreadable(ref.name, "is kept by Git LFS, which is not read", "lfs")
        if len(content) > _MAX_BLOB_BYTES:
            raise ItemUnreadable(ref.name, f"is larger than {_MAX_BLOB_BYTES} bytes", "too_large")
        with temporary(ref.name, self._scratch) as path:
            path.write_bytes(content)
            yield SourceFile(path, ref.name, ref.uri)

    def commit(self) -> None:
        """Does nothing: there is no watermark."""

    def close(self) -> None:
        """Closes the copy."""
        if self._repository is not None:
            self._repository.close()
            self._repository = None

    def _uri(self, name: str) -> str:
        base = self._url if self._guard else Path(self._url).as_uri()
        return f"git+{base}@{self._spec.ref}/{name}"

    def _fetched(self) -> Any:
        """Brings the copy up to date; a copy that is broken is made anew."""
        try:
            from dulwich import porcelain  # noqa: PLC0415 - of the extra `git`
            from dulwich.errors import GitProtocolError, NotGitRepository  # noqa: PLC0415
            from dulwich.repo import Repo  # noqa: PLC0415
        except ImportError as error:
            raise JobError("a source of kind `git` needs the extra `git`: pip install 'headrace[git]'") from error
        self.close()
        if self._guard is None:
            try:
                self._repository = Repo(self._url)
            except (NotGitRepository, OSError) as error:
                raise SourceUnavailable(self._url, "is no Git repository that can be read") from error
            return self._repository
        place = self._scratch / _COPY
        place.mkdir(parents=True, exist_ok=True)
        try:
            self._repository = Repo(str(place)) if (place / "HEAD").exists() else Repo.init_bare(str(place))
            porcelain.fetch(self._repository, self._url, username=self._spec.username or None, password=self._password)
        except (GitProtocolError, OSError, ValueError, KeyError) as error:
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            reason = reason.replace(self._password, "***") if self._password else reason
            raise SourceUnavailable(self._spec.url, f"cannot be fetched: {reason}") from None
        return self._repository

    def _tree(self, repository: Any) -> bytes:
        """Returns the tree of the reference: a branch, a tag, or a commit by its id."""
        ref = self._spec.ref.encode()
        names = [ref, b"refs/heads/" + ref, b"refs/tags/" + ref, b"refs/remotes/origin/" + ref]
        found = next((repository.refs[name] for name in names if name in repository.refs), ref)
        try:
            target = repository[found]
            while not hasattr(target, "tree"):
                target = repository[target.object[1]]
        except (KeyError, ValueError, AttributeError, AssertionError):
            reason = f"has no branch, tag or commit {self._spec.ref!r}"
            raise SourceUnavailable(self._spec.url, reason) from None
        tree: bytes = target.tree
        return tree


def _walk(repository: Any, tree: bytes, prefix: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Yields the path, mode and blob of each file below a tree, by name."""
    waiting = [(prefix, iter(repository[tree].items()))]
    while waiting:
        folder, entries = waiting[-1]
        entry = next(entries, None)
        if entry is None:
            waiting.pop()
        elif stat.S_ISDIR(entry.mode):
            waiting.append((folder + entry.path + b"/", iter(repository[entry.sha].items())))
        else:
            yield folder + entry.path, entry.mode, entry.sha
