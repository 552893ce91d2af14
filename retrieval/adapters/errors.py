"""The one error of the adapters.

Users of a framework should not have to know gRPC to tell an overload from a mistake of theirs, so what the server or
the channel says becomes one exception; a filter that cannot be asked is the same exception, raised before the call.
"""

from __future__ import annotations

from collections.abc import Mapping


class HeadraceError(Exception):
    """A question that was not answered.

    `code` is the name of the gRPC status, as `RESOURCE_EXHAUSTED`. `reason` is the server's, as `OVERLOADED`; empty
    when the server was not reached. `facts` are its facts, as `{"retry_after_ms": "120"}`.
    """

    def __init__(self, code: str, reason: str, facts: Mapping[str, str], message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.facts = dict(facts)


def invalid(field: str, bound: str, message: str) -> HeadraceError:
    """Returns the error that the server would give for such an input: `field` is what was wrong, `bound` is allowed."""
    return HeadraceError("INVALID_ARGUMENT", "INVALID_INPUT", {"field": field, "bound": bound}, message)
