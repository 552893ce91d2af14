"""How paths become the names and URIs of items, and back. Bytes that are no UTF-8 are percent-encoded in both."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes


def shown(path: str) -> str:
    """Returns a path of the file system as valid Unicode; a byte that is none becomes `%E9`."""
    return "".join(f"%{ord(one) - 0xDC00:02X}" if "\udc80" <= one <= "\udcff" else one for one in path)


def shown_bytes(path: bytes) -> str:
    """Returns a path of bytes as `shown` does."""
    return shown(path.decode("utf-8", "surrogateescape"))


def file_uri(path: Path) -> str:
    """Returns the `file://` URI of an absolute path, whatever its bytes."""
    return "file://" + quote(os.fsencode(path), safe="/~")


def file_path(uri: str) -> Path:
    """Returns the path that `file_uri` made a URI of."""
    return Path(os.fsdecode(unquote_to_bytes(uri.removeprefix("file://"))))
