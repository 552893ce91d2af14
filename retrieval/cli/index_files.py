"""The files that `headrace index` was pointed at, and the documents in them as they are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from indexers.parsing.dispatch import parse_file

from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SourceItem
from indexers.types import Metadata


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What was found under the paths given."""

    files: tuple[SourceFile, ...]
    failures: tuple[ParseFailure, ...]  # paths that are not there, folders that cannot be listed
    roots: tuple[str, ...]  # URIs; a folder's ends with a slash
    total_bytes: int


def find_files(paths: Sequence[Path]) -> FoundFiles:
    """Walks the paths in order of names; hidden files and folders below them are left out, links are not followed."""
    files: list[SourceFile] = []
    failures: list[ParseFailure] = []
    roots: list[str] = []
    for path in paths:
        root = path.resolve()
        uri = root.as_uri()
        if root.is_dir():
            roots.append(f"{uri}/")
            files += _walk(root, failures)
        elif root.exists():
            roots.append(uri)
            files.append(SourceFile(root, root.name, uri))
        else:
            failures.append(ParseFailure(str(path), uri, "there is no such file or folder"))
    return FoundFiles(tuple(files), tuple(failures), tuple(roots), sum(_size(file) for file in files))


def read_files(found: FoundFiles, metadata: Metadata, read: Callable[[int], None]) -> Iterator[SourceItem]:
    """Yields what is in the files; `metadata` is added to every document, `read` hears how many bytes are done."""
    yield from found.failures
    done = 0
    for file in found.files:
        size, characters = _size(file), 0
        for item in parse_file(file):
            if isinstance(item, ParsedDocument):
                characters += len(item.document.text)
                yield _with_metadata(item, metadata)
            else:
                yield item
            read(done + min(characters, size))
        done += size
        read(done)


def _walk(root: Path, failures: list[ParseFailure]) -> Iterator[SourceFile]:
    def failed(error: OSError) -> None:
        path = Path(error.filename or root)
        failures.append(ParseFailure(str(path), f"{path.as_uri()}/", error.strerror or "cannot be listed"))

    for folder, folders, names in os.walk(root, onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith("."):
                yield SourceFile(path, path.relative_to(root).as_posix(), path.as_uri())


def _with_metadata(item: ParsedDocument, metadata: Metadata) -> ParsedDocument:
    if not metadata:
        return item
    document = item.document
    return replace(item, document=replace(document, metadata={**document.metadata, **metadata}))


def _size(file: SourceFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0
