"""The settings of the caches: how much they hold, when an answer may be used again, what several processes share."""

from __future__ import annotations

import base64
import binascii
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from retrieval.settings.base import FieldName, Name, Section, live

_MIB = 1024 * 1024
_GIB = 1024 * _MIB
_KEY_BYTES = 32


class AnswerCacheSettings(Section):
    """When a complete answer is used again. Retrieval runs all the same, and decides whether it still holds."""

    enabled: bool = live(True)
    """Whether answers are kept and used again."""

    memory_bytes: int = Field(default=64 * _MIB, ge=0, le=16 * _GIB)
    """Memory for answers; 0 keeps none in this process."""

    ttl_s: float = live(86_400.0, gt=0.0, le=31_536_000.0)
    """How long an answer may live, give or take a tenth; its evidence may end it earlier."""

    trust_ms: int = live(0, ge=0, le=60_000)
    """For this long after an answer's evidence was checked, the same question skips retrieval; 0 checks every time."""

    similar: bool = live(True)
    """Whether an answer may serve a question in other words, once there is evidence that this goes well."""

    guard: Literal["strict", "learned"] = live("strict")
    """What happens to questions that differ in a fact (a number, name, negation, direction) or in one ordinary word:
    `strict` never serves them; `learned` leaves them to `max_error_rate`, which finds more hits where the intent of a
    question matters and its details do not."""

    min_similarity: float = live(0.7, ge=0.0, le=1.0)
    """Cosine of two questions below which they are not compared."""

    max_error_rate: float = live(0.01, ge=0.0, le=0.5)
    """Share of wrong answers that is accepted among those served to questions in other words; 0 serves none of them."""

    shadow_share: float = live(0.05, ge=0.0, le=1.0)
    """Share of answers served to questions in other words that is generated anew besides, compared and counted; without
    it no error is ever noticed, except by what apps report."""


def key_bytes(secret: SecretStr) -> bytes:
    """Returns the bytes of a key that was checked."""
    return base64.b64decode(secret.get_secret_value())


def _checked_key(value: SecretStr) -> SecretStr:
    try:
        decoded = base64.b64decode(value.get_secret_value(), validate=True)
    except binascii.Error:
        decoded = b""
    if len(decoded) != _KEY_BYTES:
        raise ValueError(f"must be {_KEY_BYTES} bytes in base64")
    return value


class TenantKeySettings(Section):
    """A key for the values of one tenant."""

    tenant: str = Field(min_length=1, max_length=63)
    """The tenant."""

    secret: SecretStr
    """32 random bytes in base64."""

    @field_validator("secret")
    @classmethod
    def _is_key(cls, value: SecretStr) -> SecretStr:
        return _checked_key(value)


class RedisSettings(Section):
    """A Redis or Valkey that several processes share. It may be slow, full or gone: requests go on without it."""

    url: SecretStr = SecretStr("")
    """`redis://user:password@host:port/database`, `rediss://` for TLS, `redis+cluster://host:port,host:port` or
    `redis+sentinel://host:port,host:port/service/database` (`rediss+...` with TLS); empty for none."""

    sentinel_username: str = ""
    """The user of the Sentinels; empty for the default one."""

    sentinel_password: SecretStr = SecretStr("")
    """The password of the Sentinels, which is not the server's; empty for none."""

    tls_ca_file: str = ""
    """Certificates that are trusted, as PEM; empty for those of the system."""

    tls_cert_file: str = ""
    """Our own certificate, as PEM, where the server asks for one."""

    tls_key_file: str = ""
    """The key of our own certificate."""

    tls_verify: bool = True
    """Whether the server's certificate and name are checked."""

    budget_ms: float = Field(default=20.0, gt=0.0, le=1000.0)
    """How long a request may wait for it; after that it goes on without."""

    max_connections: int = Field(default=8, ge=1, le=1000)
    """Look-ups that may be under way at once; a cluster has as many a node."""

    compress_above_bytes: int = Field(default=1024, ge=0, le=64 * _MIB)
    """Larger values are compressed."""

    key_prefix: str = Field(default="headrace", pattern=r"^[A-Za-z0-9_.-]{1,32}$")
    """How the keys begin, for databases that others use too."""

    ttl_s: float = Field(default=604_800.0, gt=0.0, le=31_536_000.0)
    """How long vectors, scores and results are kept, give or take a tenth."""

    share_results: bool = False
    """Whether search results go there too; only with `index.kind = "qdrant"`, where processes share collections."""

    encryption_keys: tuple[SecretStr, ...] = ()
    """Keys of 32 bytes in base64, from which each tenant's own is derived: the first encrypts, all decrypt. Without
    any, values are not encrypted."""

    tenant_keys: tuple[TenantKeySettings, ...] = ()
    """Keys of tenants that have their own; of several for a tenant the first encrypts, all decrypt."""

    @field_validator("encryption_keys")
    @classmethod
    def _are_keys(cls, values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        return tuple(map(_checked_key, values))

    @model_validator(mode="after")
    def _agrees(self) -> RedisSettings:
        if self.tenant_keys and not self.encryption_keys:
            raise ValueError("tenant_keys needs encryption_keys, for the tenants that have no key of their own")
        return self


class CachePolicySettings(Section):
    """What must not be cached. Everything that the rule names must agree."""

    tenant: Name = ""
    """The tenant; empty for all."""

    collection: Name = ""
    """The collection; empty for all."""

    field: FieldName = ""
    """A metadata field; with it, only results and answers made from documents that have the value are not kept."""

    value: str = ""
    """The field's value, as text; compared as the values of a rule are."""

    @model_validator(mode="after")
    def _says_something(self) -> CachePolicySettings:
        if not (self.tenant or self.collection or self.field):
            raise ValueError("a policy must name a tenant, a collection or a field")
        if bool(self.field) != bool(self.value):
            raise ValueError("field and value belong together")
        return self


class CacheSettings(Section):
    """What was computed before. Keys hold everything that shapes a value; search results end with the next write."""

    embeddings_bytes: int = Field(default=16 * _MIB, ge=0, le=16 * _GIB)
    """Memory for query embeddings; 0 turns the cache off."""

    token_codes_bytes: int = Field(default=64 * _MIB, ge=0, le=16 * _GIB)
    """Memory for token codes computed at query time, for collections that store none; 0 turns the cache off."""

    pair_scores_bytes: int = Field(default=32 * _MIB, ge=0, le=16 * _GIB)
    """Memory for the cross-encoder's scores of pairs seen before; 0 turns the cache off."""

    results_bytes: int = Field(default=64 * _MIB, ge=0, le=16 * _GIB)
    """Memory for search results with their contexts; 0 turns the cache off."""

    answers: AnswerCacheSettings = AnswerCacheSettings()
    """Complete answers."""

    redis: RedisSettings = RedisSettings()
    """The tier that several processes share."""

    policies: tuple[CachePolicySettings, ...] = live(())
    """What must not be cached."""
