"""Opens the job store that the settings name."""

from __future__ import annotations

from indexers.jobs.sqlite.store import SqliteJobStore
from indexers.jobs.store import JobStore
from retrieval.settings import Settings

FILE = "jobs.sqlite"


def open_job_store(settings: Settings) -> JobStore:
    """Returns the store; nothing is opened before its first call.

    Raises:
        ConfigError: Redis is asked for and not configured.
    """
    return SqliteJobStore(settings.data.folder / FILE)
