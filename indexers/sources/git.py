"""Files of a Git repository at a branch, tag or commit; a copy without history is kept in the folder of the job.

Each fingerprint is the blob id, so an unchanged file is never read. A repository on this machine is read where it is.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.git_folder import git_folder
from indexers.sources.git_objects import Blobs, files_of
from indexers.sources.git_program import GitProgram, require_git
from indexers.sources.git_remote import GitRemote
from indexers.sources.globs import Selection
from indexers.sources.naming import file_uri, shown_bytes
from indexers.sources.snapshots import temporary
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import GitSource as GitSpec

_COPY = "repository.git"
_FETCHED = "refs/headrace/fetched"
_REF = re.compile(r"(?!.*\.\.)[\w.][\w./@+-]*")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_LFS = b"version https://git-lfs.github.com/spec/"
_MAX_BLOB_BYTES = 512 * 1024**2
_QUICK_S = 60.0


class GitSource:
    """The files of one repository at one reference."""

    def __init__(self, spec: GitSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> None:
        """Checks what may be read; nothing is fetched yet.

        Raises:
            ItemUnreadable: the repository may not be read, or the password is not there.
            JobError: the program `git` is not there.
        """
        if not _REF.fullmatch(spec.ref):
            raise ItemUnreadable("source.ref", f"{spec.ref!r} is no name of a branch, tag or commit", "forbidden")
        require_git()
        self._spec = spec
        self._scratch = scratch
        self._access = access
        self._selection = Selection(spec.include, spec.exclude)
        self._local = _local_path(spec.url, base_folder)
        self._remote = GitRemote(spec, access) if self._local is None else None
        if self._local is not None:
            access.path(self._local)
        self._lock = threading.Lock()
        self._blobs: Blobs | None = None

    @property
    def complete(self) -> bool:
        """True: each scan comes by everything."""
        return True

    def scan(self) -> Iterator[Scanned]:
        """Fetches, and yields the files by name.

        Raises:
            SourceUnavailable: the repository cannot be reached, or has no such reference.
        """
        with self._lock:
            self._forget()
            git, commit = self._fetched()
        for entry in files_of(git, commit, self._spec.url):
            name = shown_bytes(entry.path)
            if not self._selection.reads(name):
                continue
            if entry.kind:
                yield SkippedFile(name, entry.kind)
            else:
                yield ItemRef(self._uri(entry.path), name, f"blob:{entry.blob}", entry.size)

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Writes the blob to a file.

        Raises:
            ItemGone: the repository does not have it any more.
            ItemUnreadable: its content is elsewhere (LFS), or is too large.
            SourceUnavailable: the repository cannot be reached.
        """
        with temporary(ref.name, self._scratch) as path:
            with self._lock:
                if self._blobs is None:
                    self._blobs = Blobs(self._fetched()[0], self._spec.url)
                found = self._blobs.write(ref.fingerprint.removeprefix("blob:"), path, _MAX_BLOB_BYTES)
            if found is None:
                raise ItemGone(ref.name, "is no longer in the repository")
            if found > _MAX_BLOB_BYTES:
                raise ItemUnreadable(ref.name, f"is larger than {_MAX_BLOB_BYTES} bytes", "too_large")
            with path.open("rb") as opened:
                if opened.read(len(_LFS)) == _LFS:
                    raise ItemUnreadable(ref.name, "is kept by Git LFS, which is not read", "lfs")
            yield SourceFile(path, ref.name, ref.uri)

    def commit(self) -> None:
        """Does nothing: there is no watermark."""

    def close(self) -> None:
        """Ends the program that reads the copy."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._blobs is not None:
            self._blobs.close()
            self._blobs = None

    def _uri(self, path: bytes) -> str:
        base = file_uri(self._local) if self._local is not None else self._spec.url.rstrip("/")
        return f"git+{base}@{quote(self._spec.ref, safe='/')}/{quote(path, safe='/~')}"

    def _fetched(self) -> tuple[GitProgram, str]:
        """Brings the copy up to date; returns what reads it and the commit."""
        if self._local is not None:
            git = GitProgram(git_folder(self._local, self._access), {}, {})
            return git, self._resolved(git, self._spec.ref)
        assert self._remote is not None
        place = self._scratch / _COPY
        reach = self._remote.reach()
        git = GitProgram(place, reach.settings, reach.environment, reach.secrets)
        self._make(place)
        try:
            wanted = self._fetch(git)
        except SourceUnavailable as failed:
            if ".lock" not in failed.reason and "corrupt" not in failed.reason:
                raise
            # What was killed here once leaves locks and halves; the copy is made anew.
            shutil.rmtree(place, ignore_errors=True)
            self._make(place)
            wanted = self._fetch(git)
        return GitProgram(place, {}, {}), self._resolved(git, wanted)

    def _make(self, place: Path) -> None:
        if not (place / "HEAD").is_file():
            shutil.rmtree(place, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            GitProgram(place, {}, {}).run(["init", "--quiet", "--bare", "--template="], self._spec.url, _QUICK_S)

    def _fetch(self, git: GitProgram) -> str:
        """Fetches the newest state of the reference; returns the name that it has in the copy."""
        spec = self._spec
        fetch = ["fetch", "--quiet", "--force", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
        try:
            git.run([*fetch, "--depth=1", spec.url, f"+{spec.ref}:{_FETCHED}"], spec.url, spec.timeout_s)
        except SourceUnavailable as failed:
            missing = ("couldn't find remote ref", "not our ref", "unadvertised object")
            if not (_COMMIT.fullmatch(spec.ref) and any(sign in failed.reason for sign in missing)):
                raise
            # Servers need not give commits by their ids alone; then it is among all that they have.
            everything = ["+refs/heads/*:refs/headrace/heads/*", "+refs/tags/*:refs/headrace/tags/*"]
            git.run([*fetch, spec.url, *everything], spec.url, spec.timeout_s)
            return spec.ref
        return _FETCHED

    def _resolved(self, git: GitProgram, name: str) -> str:
        try:
            arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
            return git.run(arguments, self._spec.url, _QUICK_S).decode().strip()
        except SourceUnavailable:
            reason = f"has no branch, tag or commit {self._spec.ref!r}"
            raise SourceUnavailable(self._spec.url, reason) from None


def _local_path(url: str, base_folder: Path) -> Path | None:
    """Returns the path of a repository on this machine; None for one elsewhere.

    Raises:
        ItemUnreadable: it is neither a path nor a URL.
    """
    if "://" not in url:
        host, colon, _ = url.partition(":")
        if "::" in url or (colon and "/" not in host):
            raise ItemUnreadable("source.url", "is neither a URL nor a path; write ssh://user@host/path", "forbidden")
        return Path(os.path.abspath(base_folder / url))  # noqa: PTH100  links stay, dots go
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" and not parts.netloc else None
