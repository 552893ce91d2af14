"""Whose request this is and what state it reads: the type that every cache key is made from.

The tenant and the data policy come from the credential alone. A key is a hash over the fields of the scope and over all
that shapes the value, taken field by field from the types themselves, so a field that is added changes every key and
none can be left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from indexers.filters import Filter
from indexers.types import CollectionKey, Epoch
from retrieval.caching.keys import CacheKey, Purpose, hash_parts


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls: made by the authenticator from the credential, never from a request's body."""

    tenant: str
    roles: frozenset[str]
    key_name: str
    data_policy: str = ""  # answers are shared among keys of one policy only


@dataclass(frozen=True, slots=True)
class ModelRevisions:
    """The models that shape vectors and scores, each with its revision; empty when there is none."""

    dense: str = ""
    sparse: str = ""
    cross_encoder: str = ""


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """A collection as the vectors of one model have it."""

    collection: CollectionKey
    model: str  # with its revision


@dataclass(frozen=True, slots=True)
class Scope:
    """What a request may see and what shapes its values."""

    tenant: str
    data_policy: str
    collection: str
    incarnation: str  # tells a collection from an earlier one of the same name
    epoch: Epoch
    models: ModelRevisions
    filter: Filter | None = None  # coerced

    @property
    def key(self) -> CollectionKey:
        """The collection, with its tenant."""
        return CollectionKey(self.tenant, self.collection)

    @property
    def space(self) -> VectorSpace:
        """The collection, as the dense vectors have it."""
        return VectorSpace(self.key, self.models.dense)

    def embedding_key(self, query: str) -> CacheKey:
        """Returns the key of a query's vectors, which depend on the tenant's text and the model alone."""
        return self._anywhere(Purpose.EMBEDDING, self.models.dense, query)

    def token_codes_key(self, text: str) -> CacheKey:
        """Returns the key of a passage's token codes."""
        return self._anywhere(Purpose.TOKEN_CODES, self.models.dense, text)

    def result_key(self, query: str, shape: Hashable) -> CacheKey:
        """Returns the key of what a search gives in this state; `shape` is a frozen dataclass of all that shapes it."""
        return self._here(Purpose.RESULT, self._all(), _written(shape), query)

    def partition(self, shape: Hashable) -> CacheKey:
        """Returns what two questions must have in common for one answer to serve both: all but state and wording."""
        return self._here(Purpose.ANSWER, self._all(without="epoch"), _written(shape))

    def _anywhere(self, purpose: Purpose, *parts: str) -> CacheKey:
        return CacheKey(purpose, self.tenant, "", hash_parts(purpose, (self.tenant, *parts)))

    def _here(self, purpose: Purpose, *parts: str) -> CacheKey:
        return CacheKey(purpose, self.tenant, self.collection, hash_parts(purpose, parts))

    def _all(self, without: str = "") -> str:
        return repr([(field.name, getattr(self, field.name)) for field in fields(self) if field.name != without])


@lru_cache(maxsize=256)
def _written(shape: Hashable) -> str:
    """Returns all fields of a shape; few shapes are in use, and writing one takes longer than hashing it."""
    return repr(shape)


def within(partition: CacheKey, *parts: str) -> CacheKey:
    """Returns the key of one question in a partition."""
    digest = hash_parts(partition.purpose, (partition.hex, *parts))
    return CacheKey(partition.purpose, partition.tenant, partition.collection, digest)


def pair_keys(tenant: str, revision: str, query: str, passages: Sequence[str]) -> list[CacheKey]:
    """Returns the key of each pair's logit, which depends on the cross-encoder and the two texts alone."""
    asked = hash_parts(Purpose.PAIR_SCORE, (tenant, revision, query)).hex()
    return [
        CacheKey(Purpose.PAIR_SCORE, tenant, "", hash_parts(Purpose.PAIR_SCORE, (asked, passage)))
        for passage in passages
    ]
