"""The one type of cache keys, and the hash that makes them.

A key is made by `Scope` alone, which puts in the tenant, the data policy, the models and whatever else shapes a value,
so an incomplete key cannot be written: caches take no bytes. Only whoever names an answer that was served, to report or
explain it, gives its digest back (`answer_key`), and the tenant is the credential's there too. Tenant and collection
stand in a key in the clear besides, for what is deleted by tenant or collection; they take no part in telling keys
apart beyond the hash.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from retrieval.caching.digests import digest_of

KEY_FORMAT = 2


class Purpose(enum.Enum):
    """What a cached value is; the letter is its place in a shared store."""

    EMBEDDING = "e"
    TOKEN_CODES = "t"  # noqa: S105 - no password
    PAIR_SCORE = "p"
    RESULT = "r"
    ANSWER = "a"


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Names one cached value of one tenant."""

    purpose: Purpose
    tenant: str
    collection: str  # empty when the value does not depend on a collection
    digest: bytes  # 32 bytes over everything that shapes the value

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def hex(self) -> str:
        """The digest as people write it."""
        return self.digest.hex()


def hash_parts(purpose: Purpose, parts: tuple[str, ...]) -> bytes:
    """Returns 32 bytes over the parts, other ones for each purpose."""
    return digest_of(parts, 32, f"headrace{KEY_FORMAT}{purpose.value}".encode())
