"""The settings of indexing jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from retrieval.settings.base import Section


class JobsSettings(Section):
    """Indexing jobs: where their queue is, who works on them, and what they may reach."""

    store: Literal["sqlite", "redis"] = "sqlite"
    """Where jobs and their state are kept: `sqlite`, a file in the data folder, or `redis`, the server of
    `cache.redis.url`, for workers on several machines. There it needs `appendonly yes` and no `allkeys-*` eviction."""

    workers: int = Field(default=1, ge=0, le=64)
    """Worker processes that a server starts by itself while runs are queued; 0 leaves them to `headrace worker`."""

    lease_s: float = Field(default=30.0, ge=1.0, le=3600.0)
    """How long a worker may be silent before another one takes over what it was doing."""

    items_per_lease: int = Field(default=32, ge=1, le=10_000)
    """Files, pages or blocks of rows that a worker takes at a time."""

    keep_runs: int = Field(default=20, ge=1, le=10_000)
    """Runs of a job whose documents are remembered."""

    ray_address: str = ""
    """The Ray cluster of jobs with `engine = "ray"`: `auto` for the one that this machine belongs to, or the address of
    its head; empty starts one on this machine for the time of a run."""

    file_roots: tuple[Path, ...] = ()
    """Folders below which jobs that are submitted to a server may read files, repositories and databases. `headrace
    jobs run` reads whatever its user can."""

    secrets: tuple[str, ...] = ()
    """References, as in `env:WIKI_TOKEN`, that jobs submitted to a server may use as secrets."""

    private_addresses: bool = False
    """Whether jobs submitted to a server may ask for addresses of private networks."""

    @field_validator("secrets")
    @classmethod
    def _are_references(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if not value.startswith(("env:", "file:/")):
                raise ValueError(f"{value!r} is no reference; write env:NAME or file:/path")
        return values
