"""Shows settings to a person: values as TOML, secrets masked, each with its origin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from retrieval.settings.load import Loaded, leaves

MASK = "********"
_HASHES = frozenset({"sha256"})  # of keys: no secrets, but nothing that anyone needs to see


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting in force: its path, its value as TOML, where that comes from, and whether a reload can change it."""

    path: str
    value: str
    origin: str  # `default`, `file`, `environment` or `flag`
    reloadable: bool


def shown_settings(loaded: Loaded, tenant: str | None = None) -> Iterator[ShownSetting]:
    """Yields every setting in the order of the tree; to a tenant, only the keys of its own."""
    for path, value, reloadable in leaves(loaded.settings):
        narrowed = path == "auth.keys" and tenant is not None
        seen = tuple(key for key in value if key.tenant == tenant) if narrowed else value
        yield ShownSetting(path, toml_value(seen), loaded.origins.get(path, "default"), reloadable)


def toml_value(value: Any) -> str:
    """Returns a value as TOML, secrets masked; what is None is left out of tables, since TOML has no null."""
    if isinstance(value, BaseModel):
        named = ((name, getattr(value, name)) for name in type(value).model_fields)
        shown = ((name, MASK if name in _HASHES else part) for name, part in named if part is not None)
        return "{ " + ", ".join(f"{name} = {toml_value(part)}" for name, part in shown) + " }"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(toml_value(part) for part in value) + "]"
    if isinstance(value, SecretStr):
        return toml_value(MASK if value.get_secret_value() else "")
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Path):
        return toml_value(str(value))
    if isinstance(value, str):
        value = _without_credentials(value)
    return json.dumps(value, ensure_ascii=False)  # strings, integers and truth values are written alike in both


def _without_credentials(text: str) -> str:
    """Masks what opens a server in an address: name and password, and the values of a query."""
    if any(letter.isspace() for letter in text):
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return MASK if "://" in text else text
    if not (parts.scheme and parts.netloc):
        return text
    user, at, host = parts.netloc.rpartition("@")
    query = "&".join(f"{pair.partition('=')[0]}={MASK}" if "=" in pair else MASK for pair in parts.query.split("&"))
    shown = parts._replace(netloc=f"{MASK if user else ''}{at}{host}", query=query if parts.query else "")
    return text if shown == parts else shown.geturl()
