"""One hash for all that is told apart by several texts: keys, contents, file names."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def digest_of(parts: Iterable[str], size: int, person: bytes = b"") -> bytes:
    """Returns `size` bytes over the parts, each with its length, so no two lists of parts collide by concatenation."""
    digest = blake2b(digest_size=size, person=person)
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()
