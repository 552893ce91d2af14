"""Files anywhere that fsspec reaches: object stores, SFTP, web servers. Listed by the store, read to a local file.

http and https go through our own guarded client, since fsspec's cannot be kept from resolving a name anew; other hosts
are checked once, before they are connected to. Chained addresses (`zip::`, `filecache::`) are refused: they would reach
files of this machine. Fingerprints are what the store says: a hash or ETag, else size and time of change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from indexers.errors import ItemGone, ItemUnreadable, JobError, SourceUnavailable
from indexers.parsing.options import SourceFile
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.fetching import Fetcher
from indexers.sources.globs import Selection, split_glob
from indexers.sources.snapshots import temporary
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import FilesSource as FilesSpec

MAX_BYTES = 4 * 1024**3
_WEB = frozenset({"http", "https"})
_LOCAL = frozenset({"file", "local"})
_EXTRAS = {"s3": "s3", "s3a": "s3", "sftp": "sftp", "ssh": "sftp"}
_BLOCK_BYTES = 1024 * 1024


class FilesSource:
    """The files below one URL."""

    def __init__(self, spec: FilesSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> None:
        """Checks what may be read; nothing is listed yet.

        Raises:
            ItemUnreadable: the URL may not be read, or a secret is not there.
            JobError: the library of its kind is not installed.
        """
        self._spec = spec
        self._scratch = scratch
        self._access = access
        parts = urlsplit(spec.url)
        if parts.password or (parts.username and parts.scheme in _WEB):
            raise ItemUnreadable("source.url", "holds credentials; use username and password_ref", "forbidden")
        if "::" in spec.url:
            raise ItemUnreadable(spec.url, "is a chained address, which is not read", "forbidden")
        self._scheme = parts.scheme
        self._guard = AddressGuard(access.private(asked=spec.allow_private))
        self._selection = Selection(spec.include, spec.exclude)
        self._fetcher: Fetcher | None = None
        self._files: Any = None
        if self._scheme in _WEB:
            self._guard.check(spec.url)
            self._fetcher = Fetcher(self._guard, spec.timeout_s, "headrace")
        else:
            self._files = _opened(spec, base_folder, access, self._guard)

    @property
    def complete(self) -> bool:
        """True: each scan comes by everything."""
        return True

    def scan(self) -> Iterator[Scanned]:
        """Yields the files by name.

        Raises:
            SourceUnavailable: the store cannot be reached, or there is nothing at the URL.
        """
        if self._fetcher is not None:
            yield self._web_file(self._fetcher)
            return
        base, glob = split_glob(_path(self._spec.url, self._scheme))
        wanted = Selection([glob]) if glob else None
        if self._scheme in _LOCAL:
            self._access.path(Path(base or "/"))
        with self._errors(self._spec.url):
            self._files.invalidate_cache()
            single = not glob and self._files.isfile(base)
            found: Mapping[str, Mapping[str, Any]] = (
                {base: self._files.info(base)} if single else self._files.find(base, detail=True)
            )
            if not found and not self._files.exists(base):  # many stores list what is not there as empty
                raise FileNotFoundError(base)
        for path, about in sorted(found.items()):
            name = PurePosixPath(path).name if single else path.removeprefix(base.rstrip("/")).lstrip("/")
            chosen = wanted is None or wanted.reads(name)
            if name and chosen and self._selection.reads(name):
                size = int(about.get("size") or 0)
                yield ItemRef(self._uri(path), name, _fingerprint(about, size), size)

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Reads the file into the scratch folder.

        Raises:
            ItemGone: it is no longer there.
            ItemUnreadable: it may not be read, or is too large.
            SourceUnavailable: it cannot be read now.
        """
        with temporary(ref.name, self._scratch) as path:
            if self._fetcher is not None:
                self._fetch(self._fetcher, ref, path)
            else:
                self._copy(ref, path)
            yield SourceFile(path, ref.name, ref.uri)

    def commit(self) -> None:
        """Does nothing: there is no watermark."""

    def close(self) -> None:
        """Closes the connections."""
        if self._fetcher is not None:
            self._fetcher.close()

    def _web_file(self, fetcher: Fetcher) -> ItemRef:
        """Fetches the one file that the address is: what it holds says whether it has changed."""
        parts = self._guard.check(self._spec.url)
        name = PurePosixPath(unquote(parts.path)).name or "index.html"
        ref = ItemRef(str(parts.copy_with(query=None, fragment=None)), name, "")
        with temporary(name, self._scratch) as path:
            self._fetch(fetcher, ref, path)
            content = path.read_bytes()
        return ItemRef(ref.uri, name, hashlib.blake2b(content, digest_size=16).hexdigest(), len(content))

    def _fetch(self, fetcher: Fetcher, ref: ItemRef, path: Path) -> None:
        found = fetcher.fetch(self._spec.url, path, MAX_BYTES)
        if found.status in (404, 410):
            raise ItemGone(ref.name, f"answers {found.status}")
        if found.status != 200:
            raise ItemUnreadable(ref.name, f"answers {found.status}", "forbidden")

    def _copy(self, ref: ItemRef, path: Path) -> None:
        place = _path(ref.uri, self._scheme)
        if self._scheme in _LOCAL:
            self._access.path(Path(place))
        size = 0
        with self._errors(ref.name), self._files.open(place, "rb") as opened, path.open("wb") as copy:
            while block := opened.read(_BLOCK_BYTES):
                size += len(block)
                if size > MAX_BYTES:
                    raise ItemUnreadable(ref.name, f"is larger than {MAX_BYTES} bytes", "too_large")
                copy.write(block)

    def _uri(self, path: str) -> str:
        host = urlsplit(self._spec.url).hostname
        return f"{self._scheme}://{host}{path}" if self._scheme in ("sftp", "ssh") else f"{self._scheme}://{path}"

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Translates what the many libraries behind fsspec raise."""
        try:
            yield
        except FileNotFoundError as error:
            if name == self._spec.url:
                raise SourceUnavailable(name, "there is nothing at this address") from error
            raise ItemGone(name, "is no longer there") from error
        except PermissionError as error:
            if name == self._spec.url:
                raise SourceUnavailable(name, "may not be listed with these credentials") from error
            raise ItemUnreadable(name, "may not be read with these credentials", "forbidden") from error
        except (OSError, ValueError, TimeoutError) as error:
            raise SourceUnavailable(name, f"cannot be read: {type(error).__name__}") from error


def _opened(spec: FilesSpec, base_folder: Path, access: SourceAccess, guard: AddressGuard) -> Any:
    """Opens the file system of the URL with the credentials that the job refers to."""
    parts = urlsplit(spec.url)
    options = _options(spec, base_folder, access, guard)
    try:
        import fsspec  # noqa: PLC0415 - of the extra `files`

        return fsspec.filesystem(parts.scheme, skip_instance_cache=True, **options)
    except ImportError as error:
        extra = _EXTRAS.get(parts.scheme, "files")
        raise JobError(f"{parts.scheme}:// needs the extra `{extra}`: pip install 'headrace[{extra}]'") from error
    except (OSError, ValueError) as error:
        raise SourceUnavailable(
            f"{parts.scheme}://{parts.hostname}", f"cannot be reached: {type(error).__name__}"
        ) from None


def _options(spec: FilesSpec, base_folder: Path, access: SourceAccess, guard: AddressGuard) -> dict[str, Any]:
    parts, password = urlsplit(spec.url), access.secret(spec.password_ref)
    if parts.scheme in ("s3", "s3a"):
        if spec.endpoint_url:
            endpoint = guard.check(spec.endpoint_url)
            guard.resolve(endpoint.host, endpoint.port or 443)
        client = {"endpoint_url": spec.endpoint_url or None, "region_name": spec.region or None}
        return {
            "anon": spec.anonymous,
            "key": spec.username or None,
            "secret": password or None,
            "client_kwargs": {name: value for name, value in client.items() if value},
        }
    if parts.scheme in ("sftp", "ssh"):
        [address, *_] = guard.resolve(parts.hostname or "", parts.port or 22)
        known = base_folder / spec.known_hosts_file if spec.known_hosts_file else Path.home() / ".ssh" / "known_hosts"
        options: dict[str, Any] = {
            "host": address,
            "port": parts.port or 22,
            "username": spec.username or parts.username,
            "password": password or None,
            "known_hosts": str(access.path(known)),
            "host_key_alias": parts.hostname,
        }
        if spec.key_file:
            options["client_keys"] = [str(access.path(base_folder / spec.key_file))]
        return options
    if parts.scheme in _LOCAL | {"memory", "gs", "gcs", "abfs", "az"}:
        return {}
    raise ItemUnreadable(spec.url, f"{parts.scheme}:// is not read; use s3, sftp, http, https or file", "forbidden")


def _path(url: str, scheme: str) -> str:
    """Returns what the file system calls the place: without scheme, and for hosts without the host."""
    rest = url.partition("://")[2]
    return f"/{rest.partition('/')[2]}" if scheme in ("sftp", "ssh") else rest


def _fingerprint(about: Mapping[str, Any], size: int) -> str:
    for key in ("ETag", "etag", "md5Hash", "content_md5", "checksum"):
        if about.get(key):
            return f"{key}:{str(about[key]).strip(chr(34))}"
    for key in ("LastModified", "mtime", "modified", "updated", "created"):
        if about.get(key):
            return f"modified:{size}-{about[key]}"
    return ""
