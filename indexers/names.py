"""Names of tenants, collections and fields: what is allowed, so that they are safe as folders and keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

from indexers.errors import InvalidInput, InvalidName
from indexers.types import CollectionKey, FieldType

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")

NAME_BOUND = "1 to 63 of a-z 0-9 _ -, starting with a letter or digit"
FIELD_BOUND = "1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or underscore"
MAX_FIELDS = 64


def check_key(key: CollectionKey) -> CollectionKey:
    """Returns the key when both of its names are allowed.

    Raises:
        InvalidName: names the part and the bound.
    """
    _check("tenant", key.tenant)
    _check("collection", key.collection)
    return key


def check_tenant(tenant: str) -> str:
    """Returns the tenant's name when it is allowed.

    Raises:
        InvalidName: says the bound.
    """
    return _check("tenant", tenant)


def check_fields(fields: Mapping[str, FieldType]) -> dict[str, FieldType]:
    """Returns the declared fields ordered by name when all names are allowed and there are not too many.

    Raises:
        InvalidName: a field's name cannot be used in a filter.
        InvalidInput: there are too many fields.
    """
    if len(fields) > MAX_FIELDS:
        bound = f"at most {MAX_FIELDS}"
        raise InvalidInput("fields", bound, f"{len(fields)} fields are declared, {bound} are allowed; declare fewer")
    for name in fields:
        if not _FIELD.fullmatch(name):
            raise InvalidName(f"fields.{name[:64]}", FIELD_BOUND, f"field name {name[:64]!r} is not {FIELD_BOUND}")
    return dict(sorted(fields.items()))


def _check(what: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidName(what, NAME_BOUND, f"{what} name {name[:64]!r} is not {NAME_BOUND}; choose another")
    return name
