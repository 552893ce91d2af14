"""The client side of Headrace: `from headrace import Client` loads neither models nor stores."""

from retrieval.client import Client

__all__ = ["Client"]
