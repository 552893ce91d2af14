"""Addresses of servers as they are configured, and the headers of requests to them."""

from __future__ import annotations

import pytest

from retrieval.errors import ConfigError
from retrieval.generation.openai_address import Address, chat_address, request_headers
from retrieval.settings.generation import BackendSettings

SETTINGS = BackendSettings(name="llm", kind="openai", base_url="http://h/v1", model="m")


@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        ("http://h/v1", Address("http", "h", None, "/v1/chat/completions")),
        ("https://h:8443/v1/", Address("https", "h", 8443, "/v1/chat/completions")),
        ("http://h", Address("http", "h", None, "/chat/completions")),
        ("HTTPS://H/a b?version=2", Address("https", "h", None, "/a%20b/chat/completions?version=2")),
        ("http://[::1]:1/v1", Address("http", "::1", 1, "/v1/chat/completions")),
        ("http://b\u00fccher.example/v1", Address("http", "xn--bcher-kva.example", None, "/v1/chat/completions")),
        ("http://ann:s%40d@h/v1", Address("http", "h", None, "/v1/chat/completions", "ann:s@d")),
    ],
)
def test_chat_completions_are_below_the_base_address(base_url: str, address: Address) -> None:
    """Slashes, queries, ports, other scripts, and a name with its password are read."""
    assert chat_address(SETTINGS, base_url) == address


@pytest.mark.parametrize(
    "base_url", ["h:8000/v1", "ftp://h/v1", "http:///v1", "http://h:port/v1", "http://[::1/v1", ""]
)
def test_what_is_no_address_is_a_fault_of_the_configuration(base_url: str) -> None:
    """It is told when the backend is opened, by the setting's name, without the address, which may hold a secret."""
    with pytest.raises(ConfigError, match="base_url: is no address") as caught:
        chat_address(SETTINGS, base_url)
    assert not base_url or base_url not in str(caught.value)


def test_name_and_password_of_the_address_take_the_place_of_the_key() -> None:
    """Both would be one header."""
    for base_url, authorization in (("http://h/v1", b"Bearer none"), ("http://ann:s%40d@h/v1", b"Basic YW5uOnNAZA==")):
        assert dict(request_headers(SETTINGS, chat_address(SETTINGS, base_url)))[b"Authorization"] == authorization


@pytest.mark.parametrize(("base_url", "host"), [("http://[::1]:1/v1", b"[::1]:1"), ("http://h/v1", b"h")])
def test_host_is_named_as_the_address_names_it(base_url: str, host: bytes) -> None:
    """With brackets where it is a number with colons, and its port where it has one."""
    assert dict(request_headers(SETTINGS, chat_address(SETTINGS, base_url)))[b"Host"] == host
