"""Opens the job store that the settings name."""

from __future__ import annotations

from indexers.jobs.sqlite.store import SqliteJobStore
from indexers.jobs.store import JobStore
from retrieval.caching.redis.configured import naming_settings, redis_options
from retrieval.errors import ConfigError
from retrieval.jobs.redis.store import RedisJobStore
from retrieval.settings import Settings
from retrieval.settings.caching import RedisSettings

FILE = "jobs.sqlite"


def open_job_store(settings: Settings) -> JobStore:
    """Returns the store in the data folder; nothing is opened before its first call."""
    return SqliteJobStore(settings.data.folder / FILE)


def open_redis_job_store(settings: RedisSettings) -> JobStore:
    """Returns the store on a Redis server; nothing is opened before its first call.

    Raises:
        ConfigError: no server is named, or not as it can be used.
    """
    if not settings.url.get_secret_value():
        raise ConfigError(("cache.redis.url: jobs in Redis need it; name the server",))
    with naming_settings():
        return RedisJobStore(redis_options(settings))
