"""The one module that touches the Hugging Face hub: fetching a few files of a model into its client's cache.

Its client reads its own variables (cache folder, `HF_TOKEN`, `HF_ENDPOINT` for a mirror, `HF_HUB_OFFLINE`); offline,
what was fetched before is found. It compares sizes, not contents: `drop_damaged` compares these, since the cache names
each file by a hash that the hub gave.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import file_digest, sha1
from pathlib import Path

import httpx
from huggingface_hub import list_repo_files, snapshot_download
from huggingface_hub.errors import HFValidationError, RevisionResolutionError, XetDownloadError

from encoders.errors import ModelNotFound

_SHA256 = re.compile(r"[0-9a-f]{64}")
_GIT_SHA1 = re.compile(r"[0-9a-f]{40}")


def download(model: str, revision: str, patterns: Sequence[str]) -> Path:
    """Fetches the files that match and returns their folder, named by its commit; "" stands for the main branch.

    Raises:
        ModelNotFound: the hub does not know the model or the revision, does not give it, or cannot be reached.
    """
    with _translated(model):
        return Path(snapshot_download(model, revision=revision or None, allow_patterns=list(patterns)))


def file_names(model: str, revision: str) -> list[str]:
    """Lists the files of a model; "" stands for the main branch. It needs the network, whatever was fetched before.

    Raises:
        ModelNotFound: the hub does not know the model or the revision, or cannot be reached.
    """
    with _translated(model):
        return list_repo_files(model, revision=revision or None)


def drop_damaged(folder: Path) -> list[str]:
    """Throws away the files of a fetched folder whose contents are not what the hub said; lists them."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    damaged = [path for path in found if not _is_whole(path.resolve())]
    for path in damaged:
        path.resolve().unlink(missing_ok=True)
        path.unlink()
    return [path.relative_to(folder).as_posix() for path in damaged]


def _is_whole(path: Path) -> bool:
    # Large files are named by their SHA-256, small ones by git's own hash, and files without links by their own names.
    if _SHA256.fullmatch(path.name):
        with path.open("rb") as opened:
            return file_digest(opened, "sha256").hexdigest() == path.name
    if _GIT_SHA1.fullmatch(path.name):
        content = path.read_bytes()
        header = f"blob {len(content)}\0".encode()
        return sha1(header + content, usedforsecurity=False).hexdigest() == path.name
    return True


@contextmanager
def _translated(model: str) -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, HFValidationError, RevisionResolutionError, XetDownloadError, OSError) as cause:
        raise ModelNotFound(
            model, "no such folder, and the hub did not give it; check name, network and rights"
        ) from cause
