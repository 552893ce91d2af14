"""The folder of generations: which one serves, and how another takes its place without a moment in between.

`CURRENT` names the serving generation and is replaced by rename, after everything it names has reached the disk. What a
crash leaves behind (a half-built folder, an old one) is swept away when the collection is opened.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from indexers.errors import IndexCorrupt
from indexers.options import ShardKind
from indexers.types import CollectionDefinition, FieldType

FORMAT_VERSION = 2

MANIFEST = "manifest.json"
STATISTICS = "bm25.npz"
EDGE = "edge"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a generation holds, and how to tell that it is whole."""

    format_version: int
    generation: int
    kind: str
    sequence: int  # the write that it includes last
    last_row: int  # every later write has higher chunk rows
    chunk_count: int
    dim: int
    dense_revision: str
    code_bytes: int
    fields: Mapping[str, str]
    file_bytes: Mapping[str, int]
    statistics_crc32: int


class Generations:
    """The generations of one collection; used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def current(self) -> Path | None:
        """Returns the serving generation's folder, None before the first one."""
        pointer = self._folder / "CURRENT"
        if not pointer.is_file():
            return None
        name = pointer.read_text().strip()
        return self._folder / name if name.isdigit() else None

    def scratch(self) -> Path:
        """Returns an empty place to build in, after sweeping what stood there."""
        place = self._folder / "building"
        shutil.rmtree(place, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        return place

    def place(self, built: Path, number: int) -> Path:
        """Moves a built folder to its own place; it does not serve yet."""
        place = self._folder / str(number)
        shutil.rmtree(place, ignore_errors=True)
        built.rename(place)
        sync(self._folder)
        return place

    def point_to(self, number: int) -> None:
        """Makes a placed generation the serving one; a crash leaves either the old one or this one."""
        replace_file(self._folder / "CURRENT", f"{number}\n".encode())

    def sweep(self) -> None:
        """Removes every folder but the serving one."""
        current = self.current()
        if self._folder.is_dir():
            for entry in self._folder.iterdir():
                if entry.is_dir() and entry != current:
                    shutil.rmtree(entry, ignore_errors=True)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest with the sizes and checksums of what is there, and brings the whole folder to the disk."""
    sizes = {one.name: one.stat().st_size for one in folder.iterdir() if one.is_file()}
    checksum = zlib.crc32((folder / STATISTICS).read_bytes())
    whole = replace(manifest, file_bytes=sizes, statistics_crc32=checksum)
    (folder / MANIFEST).write_text(json.dumps(asdict(whole), indent=1))
    for parent, _, names in os.walk(folder):
        for name in names:
            sync(Path(parent, name))
        sync(Path(parent))


def read_manifest(folder: Path) -> Manifest:
    """Reads a manifest and checks the files against it.

    Raises:
        IndexCorrupt: the generation is not whole, or of another format.
    """
    try:
        manifest = Manifest(**json.loads((folder / MANIFEST).read_text()))
        sizes = {name: (folder / name).stat().st_size for name in manifest.file_bytes}
        checksum = zlib.crc32((folder / STATISTICS).read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise IndexCorrupt(str(folder), f"the generation cannot be read ({error}); it is built again") from error
    if manifest.format_version != FORMAT_VERSION:
        raise IndexCorrupt(str(folder), f"format {manifest.format_version} is not {FORMAT_VERSION}; it is built again")
    if sizes != manifest.file_bytes or checksum != manifest.statistics_crc32:
        raise IndexCorrupt(str(folder), "files differ from the manifest; it is built again")
    return manifest


def fits(manifest: Manifest, definition: CollectionDefinition, kind: ShardKind) -> bool:
    """Tells whether a generation was built for this definition and kind of shard."""
    return (
        manifest.kind == kind.value
        and manifest.dim == definition.dim
        and manifest.dense_revision == definition.dense_revision
        and manifest.code_bytes == definition.code_bytes
        and manifest.fields == field_names(definition.fields)
    )


def field_names(fields: Mapping[str, FieldType]) -> dict[str, str]:
    """Returns the fields as a manifest holds them."""
    return {name: declared.value for name, declared in fields.items()}


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file whole or not at all, whatever crashes."""
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Brings a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
