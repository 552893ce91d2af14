"""Finds credentials that were written into a job file, where they would end up in stores, logs and repositories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from indexers.jobs.file_faults import Fault
from indexers.jobs.toml_lines import Path

# Each repetition is bounded, or ends at what cannot repeat: a text of a megabyte is looked through in milliseconds.
# user:password@ of an address; `:@` and a lone `user@` hold none.
_PASSWORD_IN_URL = re.compile(r"[a-z][a-z0-9+.-]{0,40}://[^/\s?#@:]*:[^/\s?#@]+@", re.IGNORECASE)
_SECRET_IN_QUERY = re.compile(
    r"[?&](?:password|passwd|pwd|token|access_token|api_?key|secret|sig|signature|x-amz-signature|x-goog-signature)="
    r"[^&\s]",
    re.IGNORECASE,
)
_WELL_KNOWN = re.compile(
    r"(?:\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{30,255}|glpat-[A-Za-z0-9_-]{18,255}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,255}|hr_[A-Za-z0-9_-]{43}|sk-[A-Za-z0-9_-]{32,255}))"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
)
_FOR_USERS = frozenset({"username"})  # the id of an access key is no secret
ADVICE = 'never write credentials into a job file; say where they are found, as in password_ref = "env:NAME"'


def credentials_in(tree: Any, path: Path = ()) -> Iterator[Fault]:
    """Yields a fault for each text that seems to hold a credential."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from credentials_in(value, (*path, name))
    elif isinstance(tree, list):
        for position, value in enumerate(tree):
            yield from credentials_in(value, (*path, position))
    elif isinstance(tree, str) and (found := _what(tree, path)):
        yield Fault(path, f"holds {found}; {ADVICE}")


def _what(text: str, path: Path) -> str:
    if _PASSWORD_IN_URL.search(text):
        return "an address with a password"
    if _SECRET_IN_QUERY.search(text):
        return "an address with a credential in its query"
    if path[-1:] and path[-1] not in _FOR_USERS and _WELL_KNOWN.search(text):
        return "what looks like a key"
    return ""
