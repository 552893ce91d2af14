"""Cache keys for tests of the tiers, which do not ask what a key is made from."""

from __future__ import annotations

from retrieval.caching.keys import CacheKey, Purpose, hash_parts


def cache_key(
    name: object, tenant: str = "acme", collection: str = "docs", purpose: Purpose = Purpose.RESULT
) -> CacheKey:
    """Returns a key that differs from others in any of its parts."""
    return CacheKey(purpose, tenant, collection, hash_parts(purpose, (tenant, collection, str(name))))
