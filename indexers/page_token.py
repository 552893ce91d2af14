"""Page tokens of listings: the last id given out, with a checksum, so that an invented token is refused."""

from __future__ import annotations

import base64
import binascii
import zlib

from indexers.errors import InvalidPageToken

_BOUND = "a token that a listing returned"


def write_page_token(last_id: str) -> str:
    """Returns the token that continues after an id."""
    content = last_id.encode()
    return base64.urlsafe_b64encode(zlib.crc32(content).to_bytes(4, "big") + content).decode()


def read_page_token(token: str) -> str:
    """Returns the id to continue after; an empty token starts from the beginning.

    Raises:
        InvalidPageToken: no listing gave the token out.
    """
    if not token:
        return ""
    try:
        raw = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        last_id = raw[4:].decode()
    except (binascii.Error, ValueError) as error:
        raise _invalid() from error
    if zlib.crc32(raw[4:]).to_bytes(4, "big") != raw[:4]:
        raise _invalid()
    return last_id


def _invalid() -> InvalidPageToken:
    return InvalidPageToken("page_token", _BOUND, f"the page token is not {_BOUND}; start from the first page")
