"""What keys are called in Redis, so that a tenant's or a collection's can be found by a pattern.

    prefix : envelope format and key format : purpose letter : tenant tag : collection tag : digest in hex

Tags are hashes: names of tenants and collections do not stand in the store in the clear. Tags take no part in telling
values apart (the digest does that); two tenants of the same tag would only be invalidated together.
"""

from __future__ import annotations

from hashlib import blake2b

from retrieval.caching.envelope import FORMAT
from retrieval.caching.keys import KEY_FORMAT, CacheKey
from retrieval.caching.shared import Selection

_TAG_BYTES = 8
_FORMATS = f"{KEY_FORMAT}.{FORMAT}"


def redis_name(prefix: str, key: CacheKey) -> bytes:
    """Returns the key's name in Redis."""
    tags = f"{_tag(key.tenant)}:{_tag(key.collection)}"
    return f"{prefix}:{_FORMATS}:{key.purpose.value}:{tags}:{key.hex}".encode()


def redis_pattern(prefix: str, selection: Selection) -> bytes:
    """Returns the SCAN pattern of the names that the selection takes, age aside."""
    purpose = "*" if selection.purpose is None else selection.purpose.value
    collection = "*" if selection.collection is None else _tag(selection.collection)
    return f"{prefix}:{_FORMATS}:{purpose}:{_tag(selection.tenant)}:{collection}:*".encode()


def takes(selection: Selection, key: CacheKey) -> bool:
    """Tells whether the selection takes the key, age aside."""
    return (
        selection.tenant == key.tenant
        and selection.collection in {None, key.collection}
        and selection.purpose in {None, key.purpose}
    )


def _tag(name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_TAG_BYTES, person=b"headrace tag").hexdigest()
