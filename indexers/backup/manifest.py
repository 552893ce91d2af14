"""What a backup holds: every file with its size and hash, every collection with its model and counts.

It is written last, so a folder without one is no backup, and it is read first, so nothing is replaced by what is not
whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from indexers.definition import check_model
from indexers.errors import IndexCorrupt
from indexers.generation import replace_file
from indexers.options import DenseModel
from indexers.record_schema import definition_from_json
from indexers.types import CollectionDefinition, CollectionKey, Counts

NAME = "backup.json"
FORMAT_VERSION = 1
EMBEDDED = "embedded"
QDRANT = "qdrant"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A file of a backup; `path` is relative to its folder, `part` says what the file is of its collection."""

    path: str
    part: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A collection of a backup."""

    definition: str  # as `definition_to_json` writes it
    write_sequence: int
    documents: int
    chunks: int
    files: tuple[BackupFile, ...]

    def described(self) -> CollectionDefinition:
        """Returns the definition."""
        return definition_from_json(self.definition)

    @property
    def key(self) -> CollectionKey:
        """Names the collection that was backed up."""
        return self.described().key

    @property
    def counts(self) -> Counts:
        """Says how much it held."""
        return Counts(self.documents, self.chunks)

    def file(self, part: str) -> BackupFile:
        """Returns the file of a part.

        Raises:
            IndexCorrupt: the backup has none.
        """
        for one in self.files:
            if one.part == part:
                return one
        raise IndexCorrupt(self.key.collection, f"the backup has no {part}; it was not made by this version")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup."""

    kind: str  # EMBEDDED or QDRANT
    made_at: str
    collections: tuple[BackedUp, ...]
    others: tuple[BackupFile, ...] = ()  # what belongs to no collection, such as the queue of jobs
    left_out: str = ""  # what is not in it, for people
    made_by: str = ""  # the version that wrote it
    format_version: int = FORMAT_VERSION


def now() -> str:
    """Returns the time as manifests have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_empty(folder: Path) -> None:
    """Makes the folder of a backup.

    Raises:
        FileExistsError: it holds something.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; a backup goes into a folder of its own")


def described(folder: Path, path: Path, part: str) -> BackupFile:
    """Describes a file of a backup, which has reached the disk."""
    relative = PurePosixPath(path.relative_to(folder)).as_posix()
    return BackupFile(relative, part, path.stat().st_size, sha256_of(path))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Ends a backup: from now on it is one."""
    signed = replace(manifest, made_by=f"headrace {version('headrace')}")
    replace_file(folder / NAME, (json.dumps(asdict(signed), indent=1) + "\n").encode())


def read_manifest(folder: Path) -> Manifest:
    """Reads what a backup says it holds.

    Raises:
        IndexCorrupt: there is no backup, or one of another format.
    """
    try:
        stored = json.loads((folder / NAME).read_text())
        collections = tuple(
            BackedUp(**{**one, "files": tuple(BackupFile(**file) for file in one["files"])})
            for one in stored.pop("collections")
        )
        others = tuple(BackupFile(**file) for file in stored.pop("others"))
        manifest = Manifest(collections=collections, others=others, **stored)
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = f"there is no backup that can be read ({error}); name the folder of one"
        raise IndexCorrupt(str(folder), reason) from error
    if manifest.format_version != FORMAT_VERSION:
        raise IndexCorrupt(str(folder), f"backup format {manifest.format_version} is not {FORMAT_VERSION}")
    return manifest


def check_backup(folder: Path, manifest: Manifest, chosen: Iterable[BackedUp], model: DenseModel | None) -> None:
    """Refuses to restore what is not as it was written, or what the configured model could not serve.

    Raises:
        IndexCorrupt: a file is missing or differs from its hash; names it.
        ModelMismatch: a collection holds another model's vectors; not asked when `model` is None.
    """
    collections = list(chosen)
    for file in (*manifest.others, *(file for one in collections for file in one.files)):
        _check_file(folder, file)
    for one in collections:
        definition = one.described()
        if model is not None and not definition.dense_source:  # with one, its own model is opened with it
            check_model(definition, model)


def sha256_of(path: Path) -> str:
    """Returns a file's hash as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _check_file(folder: Path, file: BackupFile) -> None:
    path = folder / file.path
    if ".." in Path(file.path).parts or Path(file.path).is_absolute():
        raise IndexCorrupt(file.path, "the manifest names a file outside the backup; do not restore it")
    if not path.is_file() or path.stat().st_size != file.size_bytes or sha256_of(path) != file.sha256:
        raise IndexCorrupt(str(path), "it is missing or is not what was backed up; nothing was restored from it")
