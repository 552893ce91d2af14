"""The one module that touches the Hugging Face hub: fetching a few files of a model into its client's cache.

Its client reads its own variables (cache folder, token, `HF_HUB_OFFLINE`); offline, what was fetched before is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, RevisionResolutionError, XetDownloadError

from encoders.errors import ModelNotFound


def download(model: str, revision: str, patterns: Sequence[str]) -> Path:
    """Fetches the files that match and returns their folder; "" stands for the main branch.

    Raises:
        ModelNotFound: the hub does not know the model or the revision, does not give it, or cannot be reached.
    """
    with _translated(model):
        return Path(snapshot_download(model, revision=revision or None, allow_patterns=list(patterns)))


@contextmanager
def _translated(model: str) -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, HFValidationError, RevisionResolutionError, XetDownloadError, OSError) as cause:
        raise ModelNotFound(
            model, "no such folder, and the hub did not give it; check name, network and rights"
        ) from cause
