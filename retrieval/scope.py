"""Whose request this is and what state it reads: the type that every cache key is made from.

The tenant comes from the credential alone. A key is a hash over all fields with their names, so a field that is added
here changes every key and none can be left out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

from indexers.types import CollectionKey, Epoch

KEY_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls: made by the authenticator from the credential, never from a request's body."""

    tenant: str
    roles: frozenset[str]
    key_name: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What a request may see and what shapes its values."""

    tenant: str
    collection: str
    epoch: Epoch
    dense_model: str
    dense_revision: str

    @property
    def key(self) -> CollectionKey:
        """The collection, with its tenant."""
        return CollectionKey(self.tenant, self.collection)

    def embedding_key(self, kind: str, text: str) -> bytes:
        """Returns the cache key of a text's vector: everything but collection and epoch, which do not shape it."""
        return hash_key("embedding", (self.tenant, self.dense_model, self.dense_revision, kind, text))

    def result_key(self, purpose: str, shape: tuple[str, ...]) -> bytes:
        """Returns the cache key of a value that depends on the collection's state."""
        own = tuple(str(getattr(self, field.name)) for field in fields(self))
        return hash_key(purpose, own + shape)


def hash_key(purpose: str, parts: tuple[str, ...]) -> bytes:
    """Hashes the parts, each with its length, so that no two lists of parts collide by concatenation."""
    digest = hashlib.blake2b(digest_size=32, person=f"headrace{KEY_FORMAT}".encode())
    for part in (purpose, *parts):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()
