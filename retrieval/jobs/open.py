"""Opens the job store that the settings name."""

from __future__ import annotations

from indexers.jobs.sqlite.store import SqliteJobStore
from indexers.jobs.store import JobStore
from retrieval.errors import ConfigError
from retrieval.settings import Settings
from retrieval.settings.caching import RedisSettings

FILE = "jobs.sqlite"


def open_job_store(settings: Settings) -> JobStore:
    """Returns the store that the settings name; nothing is opened before its first call.

    Raises:
        ConfigError: it is in Redis, and no server is named, or not as it can be used.
    """
    if settings.jobs.store == "redis":
        return open_redis_job_store(settings.cache.redis)
    return SqliteJobStore(settings.data.folder / FILE)


def open_redis_job_store(settings: RedisSettings) -> JobStore:
    """Returns the store on a Redis server; nothing is opened before its first call.

    Raises:
        ConfigError: no server is named, or not as it can be used.
    """
    if not settings.url.get_secret_value():
        raise ConfigError(("cache.redis.url: jobs in Redis need it; name the server",))
    # Imported here: a queue in the data folder needs no client of Redis.
    from retrieval.caching.redis.configured import naming_settings, redis_options  # noqa: PLC0415
    from retrieval.jobs.redis.store import RedisJobStore  # noqa: PLC0415

    with naming_settings():
        return RedisJobStore(redis_options(settings))
