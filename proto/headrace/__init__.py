"""The client side of Headrace: `from headrace import Client` loads neither models nor stores.

The client is imported at first use, since it imports the stubs of `headrace.v1` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.client import Client

__all__ = ["Client"]


def __getattr__(name: str) -> object:
    if name == "Client":
        from retrieval.client import Client  # noqa: PLC0415 - the reason is in the docstring above

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
