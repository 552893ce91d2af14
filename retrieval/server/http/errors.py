"""What only a caller over HTTP can do wrong.

RetrievalError
├── InvalidRequest
│   ├── BodyTooLarge            the body has more bytes than are taken
│   ├── MediaTypeUnknown        the body is said to be something else than JSON
│   └── HostForbidden           without keys, the request names another host than this machine
└── TooManyConnections          as many connections are open as the settings allow
"""

from __future__ import annotations

from retrieval.errors import InvalidRequest, RetrievalError

_RETRY_MS = 1000.0


class BodyTooLarge(InvalidRequest):
    """The body has more bytes than are taken."""

    def __init__(self, limit_bytes: int) -> None:
        bound = f"at most {limit_bytes} bytes"
        super().__init__("body", bound, f"the body has more than {limit_bytes} bytes; send less at once")


class MediaTypeUnknown(InvalidRequest):
    """The body is said to be something else than JSON."""

    def __init__(self) -> None:
        bound = "application/json"
        super().__init__("content-type", bound, f"the body must be JSON; send the header content-type: {bound}")


class HostForbidden(InvalidRequest):
    """Without keys, the request names another host than this machine: a page in a browser may have been led here."""

    def __init__(self) -> None:
        text = "the host header names another machine; address the server as localhost, or configure API keys"
        super().__init__("host", "a loopback address", text)


class TooManyConnections(RetrievalError):
    """As many connections are open as the settings allow."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} connections are open, which is the limit; close some or come back later")
        self.limit = limit
        self.retry_after_ms = _RETRY_MS
