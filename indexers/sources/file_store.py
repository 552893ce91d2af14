"""One fsspec file system: connected to when it is first needed, its listings and errors in our terms.

Object stores are listed flat, one request for a thousand files. Others are walked folder by folder here, since fsspec's
own walk passes over folders that it may not list. Every library behind fsspec raises errors of its own, which are
translated here and nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from indexers.errors import ItemGone, ItemUnreadable, JobError, SourceUnavailable
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.sftp import SFTP_SCHEMES, bounded, disconnect, is_lost
from indexers.sources.spec import FilesSource as FilesSpec
from indexers.sources.store_options import OBJECT_STORES, Options, checked_options, foreign_errors

_EXTRAS = {"s3": "s3", "s3a": "s3", "sftp": "sftp", "ssh": "sftp"}
# The server's program for SFTP has ended; the library goes on to use its channel for as long as the connection stands.
_CHANNEL_LOST = ("SFTPConnectionLost", "SFTPNoConnection")
_LISTING_REQUESTS = 10  # a folder takes many requests to list; it may take as long as so many
_BLOCK_BYTES = 1024 * 1024
_HASHES = ("ETag", "etag", "md5Hash", "content_md5", "checksum")
_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")


@dataclass(frozen=True, slots=True)
class Listed:
    """What a store has at a path; with a failure, a folder that could not be listed."""

    path: str
    size: int = 0
    fingerprint: str = ""
    is_file: bool = True
    failure: str = ""


class FileStore:
    """The file system of one job. Threads may share it."""

    def __init__(self, spec: FilesSpec, base_folder: Path, access: SourceAccess) -> None:
        """Raises: ItemUnreadable: the store may not be reached by this job, or a secret is not there."""
        self._scheme = urlsplit(spec.url).scheme
        guard = AddressGuard(access.private(asked=spec.allow_private))
        self._options = checked_options(spec, base_folder, access, guard)
        self._secrets = [secret for secret in (access.secret(spec.password_ref),) if secret]
        self._timeout_s = spec.timeout_s
        self._lock = threading.Lock()
        self._files: Any = None

    def file(self, path: str, address: str) -> Listed | None:
        """Returns what the store says of a file; None when the path is a folder, or nothing.

        Raises:
            SourceUnavailable: the store cannot be reached.
        """
        with self._errors(address, whole=True):
            files = self._connected(address)
            files.invalidate_cache()
            try:
                with self._bounded(files, address):
                    about = files.info(path)
            except FileNotFoundError:
                return None
        return _listed(about) if about.get("type") == "file" else None

    def below(self, path: str, address: str, enters: Callable[[str], bool]) -> Iterator[Listed]:
        """Yields what is below a folder, in a stable order; `enters` says which folders are looked into.

        Raises:
            SourceUnavailable: the store or the folder cannot be reached, or nothing is there.
        """
        if self._scheme in OBJECT_STORES:
            yield from self._flat(path, address)
            return
        waiting = [iter(self._entries(path, address, whole=True))]
        while waiting:
            about = next(waiting[-1], None)
            if about is None:
                waiting.pop()
            elif about.get("type") != "directory":
                yield _listed(about)
            elif enters(name := str(about["name"])):
                try:
                    waiting.append(iter(self._entries(name, address, whole=False)))
                except ItemGone:
                    continue
                except (ItemUnreadable, SourceUnavailable) as error:
                    if self._is_lost():  # of the folders that are left nothing is known either
                        raise
                    yield Listed(name, failure=f"the folder cannot be listed: {error.reason}")

    def copy(self, path: str, into: Path, name: str, max_bytes: int) -> None:
        """Reads a file into a local one.

        Raises:
            ItemGone, ItemUnreadable, SourceUnavailable: see `Source.open`.
        """
        size = 0
        with self._errors(name), self._opened(path, name) as read, into.open("wb") as written:
            while block := read():
                size += len(block)
                if size > max_bytes:
                    raise ItemUnreadable(name, f"is larger than {max_bytes} bytes; split it", "too_large")
                written.write(block)

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            files, self._files = self._files, None
        if files is not None and self._scheme in SFTP_SCHEMES:  # others end with the last use of theirs
            disconnect(files)

    def _flat(self, path: str, address: str) -> Iterator[Listed]:
        with self._errors(address, whole=True):
            files = self._connected(address)
            found = files.find(path, detail=True)
            if not found and not files.exists(path):  # what is not there is listed as empty
                raise FileNotFoundError(path)
        for place in sorted(found):
            if found[place].get("type") == "file" and not place.endswith("/"):
                yield _listed(found[place])

    def _entries(self, path: str, address: str, *, whole: bool) -> list[Mapping[str, Any]]:
        name = address if whole else path
        try:
            found = self._listing(path, name, whole=whole)
        except SourceUnavailable:
            if not self._is_lost():
                raise
            found = self._listing(path, name, whole=whole)  # a connection that was lost is made anew, once
        below = f"{path.rstrip('/')}/"
        # What a store calls something else than a path below is not followed, or there might be no end.
        inside = [one for one in found if str(one["name"]).startswith(below) and len(str(one["name"])) > len(below)]
        return sorted(inside, key=lambda one: str(one["name"]))

    def _listing(self, path: str, name: str, *, whole: bool) -> list[Mapping[str, Any]]:
        with self._errors(name, whole=whole):
            files = self._connected(name)
            with self._bounded(files, name, _LISTING_REQUESTS):
                found: list[Mapping[str, Any]] = files.ls(path, detail=True)
        return found

    @contextmanager
    def _opened(self, path: str, name: str) -> Iterator[Callable[[], bytes]]:
        files = self._connected(name)

        def read() -> bytes:
            with self._bounded(files, name):
                block: bytes = opened.read(_BLOCK_BYTES)
            return block

        with self._bounded(files, name):
            opened = files.open(path, "rb")
        with opened:
            yield read

    def _is_lost(self) -> bool:
        with self._lock:
            return self._files is None or self._cut_off()

    def _cut_off(self) -> bool:
        return self._scheme in SFTP_SCHEMES and is_lost(self._files)  # others connect for each request

    def _bounded(self, files: Any, name: str, requests: int = 1) -> AbstractContextManager[None]:
        """Bounds what is asked of a library that has no deadline of its own."""
        if self._scheme not in SFTP_SCHEMES:
            return nullcontext()
        return bounded(files, name, requests * self._timeout_s)

    def _connected(self, name: str) -> Any:
        """Raises: SourceUnavailable: there is no connection; whatever the reason, no file is gone for it."""
        with self._lock:
            if self._files is None or self._cut_off():
                try:
                    self._files = _file_system(self._scheme, self._options)
                except foreign_errors(self._scheme) as error:
                    raise SourceUnavailable(name, self._refusal(error)) from error
            return self._files

    @contextmanager
    def _errors(self, name: str, *, whole: bool = False) -> Iterator[None]:
        """Translates what the libraries raise; with `whole`, all of it means that the source is out of reach."""
        try:
            yield
        except FileNotFoundError as error:
            if whole:
                raise SourceUnavailable(name, "there is nothing at this address") from error
            raise ItemGone(name, "is no longer there") from error
        except PermissionError as error:
            if whole:
                raise SourceUnavailable(name, "may not be read with these credentials") from error
            raise ItemUnreadable(name, "may not be read with these credentials", "forbidden") from error
        except ImportError:
            raise
        except foreign_errors(self._scheme) as error:
            raise self._translated(error, name, whole=whole) from error

    def _translated(self, error: Exception, name: str, *, whole: bool) -> ItemGone | ItemUnreadable | SourceUnavailable:
        kind = type(error).__name__
        if kind in _CHANNEL_LOST:
            self.close()
        if not whole and kind in ("SFTPNoSuchFile", "SFTPNoSuchPath"):
            return ItemGone(name, "is no longer there")
        if not whole and kind == "SFTPPermissionDenied":
            return ItemUnreadable(name, "may not be read with these credentials", "forbidden")
        return SourceUnavailable(name, self._reason(error))

    def _refusal(self, error: Exception) -> str:
        """Returns why there is no connection, and what to do where a field of the job decides that."""
        if type(error).__name__ == "HostKeyNotVerifiable":
            return f"{self._reason(error)}; if the key is the server's, save it in source.known_hosts_file"
        if isinstance(error, PermissionError) and not error.filename:  # a local file that is not readable has a name
            return "refuses the credentials; check source.username with source.password_ref or source.key_file"
        return self._reason(error)

    def _reason(self, error: Exception) -> str:
        reason = " ".join(str(error).split())[:300]
        for secret in self._secrets:
            reason = reason.replace(secret, "***")
        return f"cannot be read: {type(error).__name__}{': ' if reason else ''}{reason}"


def _file_system(scheme: str, options: Options) -> Any:
    try:
        import fsspec  # noqa: PLC0415 - of the extra `files`

        # Not from the cache, which keeps instances with their credentials for ever.
        return fsspec.filesystem(scheme, skip_instance_cache=True, **options())
    except ImportError as error:
        extra = _EXTRAS.get(scheme, "files")
        raise JobError(f"{scheme}:// needs the extra `{extra}`: pip install 'headrace[{extra}]'") from error


def _listed(about: Mapping[str, Any]) -> Listed:
    size = int(about.get("size") or 0)
    return Listed(str(about["name"]), size, _fingerprint(about, size), about.get("type") == "file")


def _fingerprint(about: Mapping[str, Any], size: int) -> str:
    """Returns what the store tells versions apart by; empty when it tells nothing that a change must show in."""
    for key in _HASHES:
        if about.get(key):
            return f"{key.lower()}:{str(about[key]).strip(chr(34))}"
    return next((f"modified:{size}-{about[key]}" for key in _TIMES if about.get(key)), "")
