"""Opens the source that a job names; each kind is imported when it is needed, with the library that it needs."""

from __future__ import annotations

from pathlib import Path

from indexers.sources.access import SourceAccess
from indexers.sources.source import Source
from indexers.sources.spec import FilesSource, FolderSource, GitSource, SiteSource, SourceSpec

# ruff: noqa: PLC0415


def open_source(spec: SourceSpec, base_folder: Path, access: SourceAccess, scratch: Path) -> Source:
    """Returns the source; relative paths start from `base_folder`, `scratch` is this job's own folder.

    Raises:
        ItemUnreadable: it lies outside what the job may read, or a secret is not there.
        SourceUnavailable: it cannot be reached.
        ExtraMissing: its library is not installed.
    """
    if isinstance(spec, FolderSource):
        from indexers.sources.folder import FolderSource as Folder

        return Folder(spec, base_folder, access, scratch)
    if isinstance(spec, SiteSource):
        from indexers.sources.site import SiteSource as Site

        return Site(spec, access, scratch)
    if isinstance(spec, GitSource):
        from indexers.sources.git import GitSource as Git

        return Git(spec, base_folder, access, scratch)
    if isinstance(spec, FilesSource):
        from indexers.sources.files import open_files

        return open_files(spec, base_folder, access, scratch)
    from indexers.sources.sql import SqlSource as Sql

    return Sql(spec, base_folder, access, scratch)
