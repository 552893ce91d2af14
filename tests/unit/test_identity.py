"""A credential becomes a tenant and roles, or nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from retrieval.errors import ConfigError, PermissionDenied, Unauthenticated
from retrieval.identity import Authenticator, check_bind, hash_of, new_key, require
from retrieval.scope import Identity
from retrieval.settings import Settings
from retrieval.settings.service import ApiKey, AuthSettings, ServerSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "hr_secret"


def _api_key(key: str = KEY, tenant: str = "a", expires_at: datetime | None = None) -> ApiKey:
    return ApiKey.model_construct(name="n", sha256=hash_of(key), tenant=tenant, roles=("read",), expires_at=expires_at)


def _authenticator(*keys: ApiKey) -> Authenticator:
    return Authenticator(AuthSettings.model_construct(keys=keys), lambda: NOW)


def test_identity_comes_from_the_key() -> None:
    """A known key gives its tenant, its roles and its name; the scheme's case does not matter."""
    for scheme in ("Bearer", "bearer"):
        identity = _authenticator(_api_key()).authenticate([("authorization", f"{scheme} {KEY}")])
        assert identity == Identity("a", frozenset({"read"}), "n")


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        [("authorization", f"Bearer {KEY}"), ("authorization", f"Bearer {KEY}")],
        [("authorization", f"Bearer {KEY}\n")],
        [("authorization", f"Bearer {KEY} ")],
        [("authorization", f"Bearer  {KEY}")],
        [("authorization", f"Basic {KEY}")],
        [("authorization", KEY)],
        [("authorization", "Bearer ")],
        [("authorization", "Bearer unknown")],
        [("authorization", b"Bearer x")],
    ],
)
def test_identity_refuses_what_is_not_exactly_one_known_key(metadata: list[tuple[str, str | bytes]]) -> None:
    """No key, several, another scheme, white space around it, an unknown one: all are refused (TEN-02)."""
    with pytest.raises(Unauthenticated):
        _authenticator(_api_key()).authenticate(metadata)


@pytest.mark.parametrize("key", [_api_key(expires_at=NOW), _api_key(tenant="")], ids=["expired", "no tenant"])
def test_identity_refuses_expired_and_tenantless_keys(key: ApiKey) -> None:
    """A key that has ended, or that names no tenant, opens nothing (TEN-02)."""
    with pytest.raises(Unauthenticated):
        _authenticator(key).authenticate([("authorization", f"Bearer {KEY}")])


def test_identity_without_keys_is_the_default_tenant() -> None:
    """With no key configured everyone is the same tenant with all roles."""
    identity = _authenticator().authenticate([])
    assert identity == Identity("default", frozenset({"read", "write", "admin"}), "")


def test_require_keeps_roles_apart() -> None:
    """Writing does not include reading; admin includes both."""
    writer, admin = Identity("a", frozenset({"write"}), "n"), Identity("a", frozenset({"admin"}), "n")
    require(writer, "write")
    for role in ("read", "write", "admin"):
        require(admin, role)
    with pytest.raises(PermissionDenied) as denied:
        require(writer, "read")
    assert denied.value.role == "read"


def test_new_key_is_known_by_its_hash() -> None:
    """A new key is random, and the configuration needs its hash only."""
    first, second = new_key(), new_key()
    assert first.key != second.key
    assert first.sha256 == hash_of(first.key)
    assert first.key not in first.sha256


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_check_bind_without_keys_is_loopback_only(host: str, allowed: bool) -> None:
    """Without keys only loopback may be listened on; with one, any address."""
    settings = Settings(server=ServerSettings(host=host))
    check_bind(settings.model_copy(update={"auth": AuthSettings(keys=(_api_key(),))}))
    if allowed:
        check_bind(settings)
    else:
        with pytest.raises(ConfigError, match=r"auth\.keys"):
            check_bind(settings)


def test_lent_key_opens_one_tenant_until_it_is_given_back() -> None:
    """A key that the server lends its own child has just the roles that it was lent with, and only while it is."""
    authenticator = Authenticator(AuthSettings(keys=(ApiKey(name="a", sha256=hash_of("k"), tenant="acme"),)))
    with authenticator.lent("umbrella", ("read", "write"), "worker") as key:
        presented = [("authorization", f"Bearer {key}")]
        identity = authenticator.authenticate(presented)
        assert (identity.tenant, identity.roles) == ("umbrella", frozenset({"read", "write"}))
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(presented)


def test_lent_key_is_empty_where_everyone_may_call() -> None:
    """Without configured keys there is the default tenant alone, for whom nobody needs a key."""
    authenticator = Authenticator(AuthSettings())
    with authenticator.lent("default", ("write",), "worker") as key:
        assert key == ""
    with pytest.raises(PermissionDenied), authenticator.lent("acme", ("write",), "worker"):
        pass
