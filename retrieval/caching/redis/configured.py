"""Options of Redis from the settings that people write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from retrieval.caching.redis.options import RedisOptions, RedisOptionsError, TlsOptions, options_from_url
from retrieval.errors import ConfigError
from retrieval.settings.caching import RedisSettings


@contextmanager
def naming_settings() -> Iterator[None]:
    """Translates errors of options into those of settings, by the names that people write."""
    try:
        yield
    except RedisOptionsError as error:
        setting = error.field.replace(".", "_") if error.field.startswith("tls.") else "url"
        raise ConfigError((f"cache.redis.{setting}: {str(error).partition(': ')[2]}",)) from error


def redis_options(settings: RedisSettings) -> RedisOptions:
    """Returns where Redis is, as the settings name it.

    Raises:
        RedisOptionsError: they cannot be used.
    """
    options = options_from_url(settings.url.get_secret_value())
    tls = None
    if options.tls is not None:
        tls = TlsOptions(
            ca_file=settings.tls_ca_file or None,
            cert_file=settings.tls_cert_file or None,
            key_file=settings.tls_key_file or None,
            verify=settings.tls_verify,
        )
    return replace(
        options,
        tls=tls,
        sentinel_username=settings.sentinel_username or None,
        sentinel_password=settings.sentinel_password.get_secret_value() or None,
        budget_ms=settings.budget_ms,
        max_connections=settings.max_connections,
        key_prefix=settings.key_prefix,
    )
