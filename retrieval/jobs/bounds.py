"""What a job that is submitted to a server may ask for; checked when it is submitted, and again by who reads.

The check here is early and says all faults at once. It cannot see everything (where a redirect leads, what a name
resolves to), so the sources enforce the same `SourceAccess` while they read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from indexers.errors import InvalidJob, ItemUnreadable
from indexers.jobs.spec import JobSpec
from indexers.sources.access import SourceAccess
from indexers.sources.spec import FilesSource, FolderSource, GitSource, SqlSource
from retrieval.settings.jobs import JobsSettings

_LOCAL = frozenset({"file", "local"})
_FILE_DATABASES = ("sqlite", "duckdb")


def submitted_access(settings: JobsSettings) -> SourceAccess:
    """Returns what jobs that are submitted to a server may reach."""
    return SourceAccess(settings.file_roots, frozenset(settings.secrets), settings.private_addresses)


def checked_base(base_folder: str, access: SourceAccess) -> str:
    """Returns the folder that a job's relative paths start from; without one the first folder that jobs may read.

    Raises:
        InvalidJob: it lies outside the folders that jobs may read.
    """
    roots = access.file_roots
    if not base_folder:
        return str(roots[0].resolve()) if roots else ""
    try:
        return str(access.path(Path(base_folder)))
    except ItemUnreadable as error:
        raise InvalidJob((f"base_folder: {error.reason}",)) from None


def check_bounds(spec: JobSpec, base_folder: str, access: SourceAccess) -> None:
    """Lets the job pass when it asks for nothing that it may not reach.

    Raises:
        InvalidJob: names each key that asks for more.
    """
    faults = [*_path_faults(spec, base_folder, access), *_secret_faults(spec.source, access)]
    if getattr(spec.source, "allow_private", False) and not access.private_addresses:
        faults.append("source.allow_private: jobs may not read private networks here; jobs.private_addresses allows it")
    if faults:
        raise InvalidJob(tuple(faults))


def needs_base(spec: JobSpec) -> bool:
    """Tells whether the job names paths that are relative to the folder of its file."""
    return any(not path.is_absolute() for _, path in _paths(spec))


def _path_faults(spec: JobSpec, base_folder: str, access: SourceAccess) -> Iterator[str]:
    for key, path in _paths(spec):
        if not path.is_absolute() and not base_folder:
            yield f"source.{key}: is relative to nothing here; write the whole path on the server, or give base_folder"
            continue
        try:
            access.path(Path(base_folder) / path)
        except ItemUnreadable as error:
            yield f"source.{key}: {error.reason}"


def _paths(spec: JobSpec) -> Iterator[tuple[str, Path]]:
    source = spec.source
    if isinstance(source, FolderSource):
        yield "path", Path(source.path)
    elif isinstance(source, FilesSource):
        for part in source.url.split("::"):  # as in zip://*.md::file:///archive.zip
            address = urlsplit(part)
            if address.scheme in _LOCAL:
                yield "url", Path(unquote(f"{address.netloc}{address.path}"))
        for key in ("key_file", "known_hosts_file"):
            if value := getattr(source, key):
                yield key, Path(value)
    elif isinstance(source, GitSource):
        if (path := _git_path(source.url)) is not None:
            yield "url", path
    elif isinstance(source, SqlSource) and source.url.lower().startswith(_FILE_DATABASES):
        place = source.url.partition("://")[2].partition("?")[0]
        yield "url", Path(unquote(place.removeprefix("/")))


def _git_path(url: str) -> Path | None:
    """Returns the path of a repository on this machine; None for one elsewhere, as in https:// or user@host:path."""
    address = urlsplit(url)
    if address.scheme in _LOCAL:
        return Path(unquote(address.path))
    if "://" in url:
        return None
    host, colon, _ = url.partition(":")
    return None if colon and "/" not in host else Path(url)


def _secret_faults(source: BaseModel, access: SourceAccess) -> Iterator[str]:
    if access.secrets is None:
        return
    for name, value in source:
        if name.endswith("_ref") and value and value not in access.secrets:
            yield f"source.{name}: {value} is no secret that jobs may use; have jobs.secrets name it"
        elif name == "header_refs":
            for header, reference in value.items():
                if reference and reference not in access.secrets:
                    yield f"source.header_refs.{header}: {reference} is no secret that jobs may use"
