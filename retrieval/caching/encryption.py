"""Values encrypted at rest with AES-256-GCM, by a key per tenant.

A tenant's key is its own, as configured, or derived from a master key by HKDF-SHA256 (RFC 5869) with the tenant as
info, so that one tenant's key opens nothing of another's. Several keys may be given for a rotation: the first encrypts,
all decrypt. A value says which key it needs by a hash of the key, so nobody keeps names of keys beside the keys.

The nonce is 12 random bytes: NIST SP 800-38D allows 2^32 values under one key that way; rotate before.
Values are compressed first. Their length tells how well they compress, to one who reads the store and can also choose
part of a value; within one tenant's cache that is taken as harmless.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from threading import Lock

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
_NONCE_BYTES = 12
_KEY_ID_BYTES = 8
_KEPT_TENANTS = 1024  # derived keys are remembered for so many tenants
_SALT = b"headrace cache values 1"


class EncryptionKeyError(ValueError):
    """A key that cannot be used; `field` says which."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}; give {KEY_BYTES} random bytes")
        self.field = field


class TenantCipher:
    """Encrypts and decrypts values with a key per tenant."""

    def __init__(self, master_keys: Sequence[bytes], tenant_keys: Mapping[str, Sequence[bytes]] | None = None) -> None:
        """Takes keys of 32 bytes, newest first; a tenant in `tenant_keys` uses those and no master key.

        Raises:
            EncryptionKeyError: when a key has another length, or there is none.
        """
        self._master_keys = tuple(master_keys)
        self._tenant_keys = {tenant: tuple(keys) for tenant, keys in (tenant_keys or {}).items()}
        self._rings: OrderedDict[str, dict[bytes, AESGCM]] = OrderedDict()
        self._ordering = Lock()  # large values are sealed and opened in threads
        _check("master_keys", self._master_keys)
        for tenant, keys in self._tenant_keys.items():
            _check(f"tenant_keys.{tenant}", keys)

    def encrypt(self, tenant: str, content: bytes, associated: bytes) -> bytes:
        """Returns key id, nonce and ciphertext with its tag."""
        key_id, newest = next(iter(self._ring(tenant).items()))
        nonce = os.urandom(_NONCE_BYTES)
        return key_id + nonce + newest.encrypt(nonce, content, key_id + associated)

    def decrypt(self, tenant: str, content: bytes, associated: bytes) -> bytes | None:
        """Returns what was encrypted; None when the key is not known or anything was changed."""
        key_id, nonce = content[:_KEY_ID_BYTES], content[_KEY_ID_BYTES : _KEY_ID_BYTES + _NONCE_BYTES]
        key = self._ring(tenant).get(key_id)
        if key is None or len(nonce) != _NONCE_BYTES:
            return None
        try:
            return key.decrypt(nonce, content[_KEY_ID_BYTES + _NONCE_BYTES :], key_id + associated)
        except InvalidTag:
            return None

    def _ring(self, tenant: str) -> dict[bytes, AESGCM]:
        """Returns the tenant's keys by id, the one that encrypts first."""
        with self._ordering:
            ring = self._rings.get(tenant)
            if ring is None:
                ring = self._rings[tenant] = self._make_ring(tenant)
                if len(self._rings) > _KEPT_TENANTS:
                    self._rings.popitem(last=False)
            self._rings.move_to_end(tenant)
            return ring

    def _make_ring(self, tenant: str) -> dict[bytes, AESGCM]:
        own = self._tenant_keys.get(tenant)
        keys = own if own is not None else [_derive(master, tenant) for master in self._master_keys]
        return {_key_id(key): AESGCM(key) for key in keys}


def _check(field: str, keys: Sequence[bytes]) -> None:
    if not keys:
        raise EncryptionKeyError(field, "there is no key")
    for key in keys:
        if len(key) != KEY_BYTES:
            raise EncryptionKeyError(field, f"a key has {len(key)} bytes")


def _derive(master: bytes, tenant: str) -> bytes:
    info = b"tenant " + tenant.encode("utf-8", "surrogatepass")
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=_SALT, info=info).derive(master)


def _key_id(key: bytes) -> bytes:
    return blake2b(key, digest_size=_KEY_ID_BYTES, person=b"headrace key id").digest()
