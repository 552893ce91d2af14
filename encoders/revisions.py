"""A hash of everything that shapes a model's results: vectors of two revisions are never compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path


def revision_of(files: Sequence[Path], settings: str) -> str:
    """Returns 16 hexadecimal digits for the contents of the files, weights kept beside them, and the settings."""
    digest = blake2b(settings.encode(), digest_size=8)
    for file in files:
        for part in (file, *_external_weights(file)):
            state = part.stat()
            digest.update(_content_digest(part, state.st_size, state.st_mtime_ns))
    return digest.hexdigest()


def _external_weights(file: Path) -> list[Path]:
    return [path for path in (Path(f"{file}_data"), Path(f"{file}.data")) if path.is_file()]


@lru_cache(maxsize=64)
def _content_digest(file: Path, size_bytes: int, modified_ns: int) -> bytes:
    del size_bytes, modified_ns  # parts of the key: a file that was replaced is read again
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").digest()
