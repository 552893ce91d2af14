"""Files that settings name: whether they are there, so that a check says so before a server is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from retrieval.errors import ConfigError
from retrieval.settings import Settings

_BUNDLED = "bundled"


def check_files(settings: Settings) -> None:
    """Refuses settings of files that are not there. Models that can be fetched are not looked for.

    Raises:
        ConfigError: names each setting and its file.
    """
    if missing := tuple(f"{path}: there is no file {file}" for path, file in _named(settings) if not file.is_file()):
        raise ConfigError(missing)


def _named(settings: Settings) -> Iterator[tuple[str, Path]]:
    if settings.context.tokenizer != _BUNDLED:
        yield "context.tokenizer", Path(settings.context.tokenizer)
    for backend in settings.generation.backends:
        path = f"generation.backends {backend.name!r}"
        for name, file in (("tokenizer", backend.tokenizer), ("tls_ca_file", backend.tls_ca_file)):
            if file and file != _BUNDLED:
                yield f"{path}: {name}", Path(file)
        if backend.kind == "llama" and backend.model.endswith(".gguf"):
            yield f"{path}: model", Path(backend.model)
