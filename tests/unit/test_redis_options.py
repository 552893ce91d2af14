"""Where Redis is, read from a URL and checked before anything is opened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from retrieval.caching.redis.options import (
    Node,
    RedisOptions,
    RedisOptionsError,
    TlsOptions,
    Topology,
    options_from_url,
)
from retrieval.caching.redis.tier import open_redis_tier

HERE = RedisOptions((Node("cache", 6379),))


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("redis://cache", HERE),
        ("redis://cache:7000/2", RedisOptions((Node("cache", 7000),), database=2)),
        ("rediss://cache", replace(HERE, tls=TlsOptions())),
        ("redis://ada:p%40ss@cache", replace(HERE, username="ada", password="p@ss")),
        ("redis://:pass@cache", replace(HERE, password="pass")),
        ("redis://[::1]:7000", RedisOptions((Node("::1", 7000),))),
        ("redis+cluster://a:1,b", RedisOptions((Node("a", 1), Node("b", 6379)), Topology.CLUSTER)),
        ("redis+sentinel://a,b:9/main/3", RedisOptions((Node("a", 26379), Node("b", 9)), Topology.SENTINEL, "main", 3)),
    ],
)
def test_options_are_read_from_a_url(url: str, options: RedisOptions) -> None:
    """Scheme, credentials, servers, service and database stand in the URL; bounds keep their defaults."""
    assert options_from_url(url) == options


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("http://cache", "url"),
        ("redis+unix://cache", "url"),
        ("redis://", "nodes"),
        ("redis://a,b", "nodes"),
        ("redis://:secret@cache:99999", "url"),
        ("redis://:secret@cache:none", "url"),
        ("redis://cache/none", "url"),
        ("redis://cache/1/2", "url"),
        ("redis://cache?db=2", "url"),
        ("redis+sentinel://a", "sentinel_service"),
        ("redis+cluster://a/1", "database"),
    ],
)
def test_options_of_a_bad_url_are_refused_by_name(url: str, field: str) -> None:
    """The error names the field and never shows a password."""
    with pytest.raises(RedisOptionsError) as caught:
        options_from_url(url)
    assert caught.value.field == field
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("budget_ms", 0.0),
        ("budget_ms", float("nan")),
        ("connect_timeout_ms", -1.0),
        ("max_connections", 0),
        ("failures_to_open", 0),
        ("queue_count", -1),
        ("queue_bytes", -1),
        ("database", -1),
        ("key_prefix", ""),
        ("key_prefix", "a*"),
        ("key_prefix", "{a}"),
        ("nodes", ()),
        ("nodes", (Node("", 1),)),
        ("sentinel_service", "main"),
    ],
)
def test_options_out_of_bounds_are_refused_by_name(field: str, value: Any) -> None:
    """Each bound is checked, and the error names its field."""
    with pytest.raises(RedisOptionsError) as caught:
        replace(HERE, **{field: value})
    assert caught.value.field == field


def test_options_do_not_show_passwords() -> None:
    """Neither when they are printed nor in the name of the servers."""
    options = replace(options_from_url("redis://ada:secret@cache"), sentinel_password="secret")
    assert "secret" not in repr(options) + options.shown
    assert options.shown == "cache:6379"


@pytest.mark.parametrize(
    ("tls", "field"),
    [
        (TlsOptions(ca_file="/nowhere/ca.pem"), "tls.ca_file"),
        (TlsOptions(cert_file="/nowhere/cert.pem"), "tls.cert_file"),
        (TlsOptions(cert_file=__file__), "tls.cert_file"),
    ],
)
async def test_tier_names_a_certificate_that_cannot_be_read(tls: TlsOptions, field: str) -> None:
    """A missing or wrong file is a fault of the configuration, found at once."""
    with pytest.raises(RedisOptionsError) as caught:
        open_redis_tier(replace(HERE, tls=tls))
    assert caught.value.field == field


def test_key_file_goes_with_a_certificate() -> None:
    """A key alone is refused."""
    with pytest.raises(RedisOptionsError, match=r"tls\.cert_file"):
        replace(HERE, tls=TlsOptions(key_file="key.pem"))
