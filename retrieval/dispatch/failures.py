"""What a backend's error says: whether to try again, whether the server is to blame, which error to tell of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from retrieval.errors import BackendCut, BackendError, BackendTimeout, BackendUnavailable, Overloaded
from retrieval.route import Outcome

Failure: TypeAlias = BackendUnavailable | BackendTimeout
"""An attempt failed before anything of an answer had come."""

_SERVERS_FAULT = frozenset({401, 403, 404})  # our credentials or its address: no request will do better
_FULL = frozenset({429, 503})


def is_transient(failure: Failure) -> bool:
    """Tells whether the same request may work in a moment."""
    return isinstance(failure, BackendTimeout) or failure.transient


def outcome_of(error: BackendError) -> Outcome:
    """Returns what an error makes of an attempt."""
    if isinstance(error, BackendCut):
        return Outcome.CUT
    return Outcome.TIMEOUT if isinstance(error, BackendTimeout) else Outcome.FAILED


def blames_server(error: BackendError) -> bool:
    """Tells whether an error speaks against the server, not against the request."""
    refused = isinstance(error, BackendUnavailable) and not error.transient and 400 <= error.status < 500
    return not refused or getattr(error, "status", 0) in _SERVERS_FAULT


def says_full(error: BackendError) -> bool:
    """Tells whether an error says that the server had more to do than it can."""
    return isinstance(error, BackendTimeout) or (isinstance(error, BackendUnavailable) and error.status in _FULL)


def most_telling(errors: Sequence[BackendError | Overloaded]) -> BackendError | Overloaded:
    """Returns the error that says most about why there is no answer; among equals the last."""
    return max(enumerate(errors), key=lambda numbered: (_weight(numbered[1]), numbered[0]))[1]


def _weight(error: BackendError | Overloaded) -> int:
    if isinstance(error, Overloaded):
        return 0
    if isinstance(error, BackendUnavailable):
        return 1 if error.transient else 3
    return 2
