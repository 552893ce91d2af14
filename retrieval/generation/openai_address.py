"""Where a server's chat completions are, and what every request to it says of us."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from retrieval.errors import ConfigError
from retrieval.settings.generation import BackendSettings

_PATH = "/chat/completions"
_SAFE = "/%:@!$&'()*+,;=~-._"  # in a path, besides letters and digits


@dataclass(frozen=True, slots=True)
class Address:
    """A URL in parts, as they go over the wire."""

    scheme: str
    host: str  # in ASCII
    port: int | None  # None for the scheme's own
    target: str  # path and query
    user: str = ""  # `name:password`

    @property
    def host_header(self) -> str:
        """The host as a request names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def chat_address(settings: BackendSettings, base_url: str) -> Address:
    """Returns the address of the chat completions below a base URL; a query is kept.

    Raises:
        ConfigError: it is no address of an HTTP server.
    """
    try:
        parts = urlsplit(base_url)
        host, port = _ascii(parts.hostname or ""), parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.scheme not in ("http", "https"):
        fault = "is no address of an HTTP server; write it like http://127.0.0.1:8000/v1"
        raise ConfigError((f"generation.backends {settings.name!r}: base_url: {fault}",))
    target = quote(parts.path.rstrip("/") + _PATH, safe=_SAFE) + (f"?{parts.query}" if parts.query else "")
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
    return Address(parts.scheme, host, port, target, user)


def request_headers(settings: BackendSettings, address: Address) -> list[tuple[bytes, bytes]]:
    """Returns the headers of every request. A name and password in the address take the place of the key."""
    authorization = f"Bearer {settings.api_key.get_secret_value() or 'none'}"
    if address.user:
        authorization = f"Basic {base64.b64encode(address.user.encode()).decode()}"
    headers = {
        "Host": address.host_header,
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",  # what compresses a stream holds it back
        "Authorization": authorization,
        "Content-Type": "application/json",
        "User-Agent": "headrace",
    }
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _ascii(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode("ascii")
