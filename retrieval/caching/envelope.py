"""What a value looks like in a shared store: a header that says whose it is, the value, and a checksum.

A shared store may hold anything: a value cut short, another program's bytes, or, through a connection that lost count
of its replies, the value of another key. So an envelope names its key and is checked whole, by a hash that the key's
full digest takes part in. Whatever is not exactly right reads as absent.

    magic 3 | format 1 | flags 1 | raw size 4 | stored at 8 (float64, seconds) | digest's start 16 | body | checksum 8
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Protocol

from retrieval.caching.keys import CacheKey
from retrieval.caching.shared import Stored

FORMAT = 1
COMPRESS_ABOVE_BYTES = 1024
MAX_VALUE_BYTES = 8 << 20
_MAGIC = b"HRC"
_COMPRESSED, _ENCRYPTED = 1, 2
_HEADER = struct.Struct("<3sBBId16s")
HEADER_BYTES = _HEADER.size
_CHECKSUM_BYTES = 8
_WORTH = 0.9  # a value that shrinks less is left alone: it is read more often than it is written
_LEVEL = 1  # of zlib: token codes and JSON shrink about as much as at 6, in a third of the time


class Cipher(Protocol):
    """Encrypts for one tenant; `associated` is bound to the result without being in it."""

    def encrypt(self, tenant: str, content: bytes, associated: bytes) -> bytes:
        """Returns the content encrypted."""
        ...

    def decrypt(self, tenant: str, content: bytes, associated: bytes) -> bytes | None:
        """Returns the content; None when it is not what was encrypted, or the key is not known."""
        ...


@dataclass(frozen=True, slots=True)
class Header:
    """What an envelope says of itself before it is opened."""

    flags: int
    raw_bytes: int
    stored_at_s: float
    digest_start: bytes


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Seals values and opens them; with a cipher, only encrypted values are opened."""

    cipher: Cipher | None = None
    compress_above_bytes: int = COMPRESS_ABOVE_BYTES
    max_value_bytes: int = MAX_VALUE_BYTES

    def seal(self, key: CacheKey, value: bytes, stored_at_s: float) -> bytes:
        """Returns the value as a shared store takes it; `value` has at most `max_value_bytes`."""
        body, flags = value, 0
        if len(value) > self.compress_above_bytes:
            packed = zlib.compress(value, _LEVEL)
            if len(packed) < _WORTH * len(value):
                body, flags = packed, _COMPRESSED
        if self.cipher is not None:
            flags |= _ENCRYPTED
        header = _HEADER.pack(_MAGIC, FORMAT, flags, len(value), stored_at_s, key.digest[:16])
        if self.cipher is not None:
            body = self.cipher.encrypt(key.tenant, body, header + key.digest)
        return header + body + _checksum(key, header + body)

    def open(self, key: CacheKey, stored: bytes) -> Stored | None:
        """Returns the value; None unless it is whole, of this key and format, and encrypted if values are."""
        header = read_header(stored)
        if header is None or not self._fits(key, header):
            return None
        content, checksum = stored[:-_CHECKSUM_BYTES], stored[-_CHECKSUM_BYTES:]
        if not compare_digest(_checksum(key, content), checksum):
            return None
        body: bytes | None = content[HEADER_BYTES:]
        if self.cipher is not None:
            body = self.cipher.decrypt(key.tenant, content[HEADER_BYTES:], content[:HEADER_BYTES] + key.digest)
        if body is not None and header.flags & _COMPRESSED:
            body = _decompress(body, header.raw_bytes)
        if body is None or len(body) != header.raw_bytes:
            return None
        return Stored(body, header.stored_at_s)

    def _fits(self, key: CacheKey, header: Header) -> bool:
        return (
            header.digest_start == key.digest[:16]
            and header.raw_bytes <= self.max_value_bytes
            and bool(header.flags & _ENCRYPTED) == (self.cipher is not None)
        )


def read_header(stored: bytes) -> Header | None:
    """Returns the header; None when it is not one of ours. It is not vouched for: the checksum is not looked at."""
    if len(stored) < HEADER_BYTES:
        return None
    magic, version, flags, raw_bytes, stored_at_s, digest_start = _HEADER.unpack_from(stored)
    if (magic, version) != (_MAGIC, FORMAT) or flags & ~(_COMPRESSED | _ENCRYPTED):
        return None
    if not (math.isfinite(stored_at_s) and stored_at_s >= 0):
        return None
    return Header(flags, raw_bytes, stored_at_s, digest_start)


def belongs_to_another(key: CacheKey, stored: bytes) -> bool:
    """Tells whether this is an envelope made for another key, so that whoever handed it over mixed up keys."""
    header = read_header(stored)
    return header is not None and header.digest_start != key.digest[:16]


def _checksum(key: CacheKey, content: bytes) -> bytes:
    return blake2b(content, digest_size=_CHECKSUM_BYTES, key=key.digest).digest()


def _decompress(body: bytes, raw_bytes: int) -> bytes | None:
    """Never makes more than one byte above what the header declares, whatever the body would swell to."""
    inflating = zlib.decompressobj()
    try:
        value = inflating.decompress(body, raw_bytes + 1)
    except zlib.error:
        return None
    return value if inflating.eof and not inflating.unused_data else None
