"""Who calls: an API key in the metadata becomes a tenant and roles; nothing else does.

Only hashes of keys are configured and compared, each in constant time and all of them every time, so an answer's timing
says nothing about a key. The roles are separate: `write` does not include `read`; `admin` includes both. Without any
key configured everyone is the tenant `default` with all roles, and the server listens on loopback only.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from retrieval.errors import ConfigError, PermissionDenied, Unauthenticated
from retrieval.scope import Identity
from retrieval.settings import Settings
from retrieval.settings.service import ApiKey, AuthSettings, Role

DEFAULT_TENANT = "default"
ALL_ROLES: frozenset[str] = frozenset(("read", "write", "admin"))
_SCHEME = "bearer "


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made: the caller gets `key`, the configuration gets `sha256`."""

    key: str
    sha256: str


def new_key() -> NewKey:
    """Returns a random key of 256 bits and its hash."""
    key = f"hr_{secrets.token_urlsafe(32)}"
    return NewKey(key, hash_of(key))


def hash_of(key: str) -> str:
    """Returns the SHA-256 of a key, in hexadecimal, as the configuration holds it."""
    return hashlib.sha256(key.encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC)


class Authenticator:
    """Turns the metadata of a call into an identity."""

    def __init__(self, auth: AuthSettings, now: Callable[[], datetime] = _now) -> None:
        self._keys = auth.keys
        self._now = now
        self._lent: dict[str, ApiKey] = {}

    @contextmanager
    def lent(self, tenant: str, roles: Iterable[Role], name: str) -> Iterator[str]:
        """Gives a key of this process' own making, for a child of it; it is void when the block ends.

        Where no keys are configured everyone is the default tenant, so nobody needs one, and it is empty.

        Raises:
            PermissionDenied: no keys are configured, and the tenant is not the default one.
        """
        if not self._keys:
            if tenant != DEFAULT_TENANT:
                raise PermissionDenied("write")
            yield ""
            return
        made = new_key()
        self._lent[made.sha256] = ApiKey(name=name, sha256=made.sha256, tenant=tenant, roles=tuple(roles))
        try:
            yield made.key
        finally:
            del self._lent[made.sha256]

    def authenticate(self, metadata: Iterable[tuple[str, str | bytes]]) -> Identity:
        """Returns who calls.

        Raises:
            Unauthenticated: no credential, several, one of another kind, unknown, expired or without a tenant.
        """
        if not self._keys:
            return Identity(DEFAULT_TENANT, ALL_ROLES, "")
        key = self._find(_credential(metadata))
        if key is None:
            raise Unauthenticated("the API key is not known")
        if key.expires_at is not None and key.expires_at <= self._now():
            raise Unauthenticated("the API key has expired")
        if not key.tenant:
            raise Unauthenticated("the API key has no tenant")
        return Identity(key.tenant, frozenset(key.roles), key.name, key.data_policy)

    def _find(self, presented: str) -> ApiKey | None:
        digest = hash_of(presented)
        found = None
        for key in (*self._keys, *self._lent.values()):
            if hmac.compare_digest(key.sha256, digest):
                found = key
        return found


def require(identity: Identity, role: Role) -> None:
    """Lets the identity pass when it has the role.

    Raises:
        PermissionDenied: it has neither the role nor `admin`.
    """
    if role not in identity.roles and "admin" not in identity.roles:
        raise PermissionDenied(role)


def check_bind(settings: Settings) -> None:
    """Refuses to open the service to a network without keys.

    Raises:
        ConfigError: the server would listen beyond loopback and no API key is configured.
    """
    listeners = {"server.host": settings.server.host}
    if settings.http.port:
        listeners["http.host"] = settings.http.host
    for field, host in listeners.items():
        if not settings.auth.keys and not _is_loopback(host):
            raise ConfigError((f"{field}: {host} is reachable from outside and auth.keys is empty; add a key",))


def _credential(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    entries = [value for name, value in metadata if name == "authorization"]
    if not entries:
        raise Unauthenticated("no API key was presented")
    if len(entries) > 1:
        raise Unauthenticated("several authorization entries were presented")
    entry = entries[0]
    if not isinstance(entry, str) or not entry.lower().startswith(_SCHEME):
        raise Unauthenticated("the authorization is not of the kind Bearer")
    return entry[len(_SCHEME) :]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
