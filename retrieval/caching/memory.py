"""The cache in this process: least recently used entries leave when the bytes are used up.

Values are bytes so that any tier can hold them; the codecs are beside the stages that use them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

ENTRY_OVERHEAD_BYTES = 200  # key object, dict slot and links, as measured with tracemalloc on CPython 3.11


class Cache(Protocol):
    """Bytes by hashed key."""

    @property
    def name(self) -> str:
        """What ledgers and metrics call it."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """Returns the value, or None when it is not there."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Stores the value; one that is too large for the cache is not stored."""
        ...

    def invalidate(self, key: bytes) -> None:
        """Forgets the value, if it is there."""
        ...


class MemoryCache:
    """A least-recently-used cache bounded in bytes; all operations are constant time. Not thread-safe."""

    def __init__(self, name: str, capacity_bytes: int) -> None:
        self._name = name
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._values: OrderedDict[bytes, bytes] = OrderedDict()

    @property
    def name(self) -> str:
        """What ledgers and metrics call it."""
        return self._name

    @property
    def used_bytes(self) -> int:
        """Bytes of keys, values and their bookkeeping."""
        return self._used_bytes

    def get(self, key: bytes) -> bytes | None:
        """Returns the value, or None when it is not there."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: bytes, value: bytes) -> None:
        """Stores the value; one that is too large for the cache is not stored."""
        self.invalidate(key)
        size = _size(key, value)
        if size > self._capacity_bytes:
            return
        self._values[key] = value
        self._used_bytes += size
        while self._used_bytes > self._capacity_bytes:
            oldest, gone = self._values.popitem(last=False)
            self._used_bytes -= _size(oldest, gone)

    def invalidate(self, key: bytes) -> None:
        """Forgets the value, if it is there."""
        value = self._values.pop(key, None)
        if value is not None:
            self._used_bytes -= _size(key, value)


def _size(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + ENTRY_OVERHEAD_BYTES
