"""A thin async client: opens a channel, presents the key, returns the messages of `headrace.v1` as they come.

Importing it loads neither models nor stores; the filter language is imported when a filter is given as text. Errors are
grpc's own `AioRpcError`; `error_info` reads what our server says in them.
"""

from retrieval.client.calls import CHANNEL_OPTIONS, DEFAULT_TARGET, Client
from retrieval.client.messages import document, error_info, filter_message, retrieve_request

__all__ = [
    "CHANNEL_OPTIONS",
    "DEFAULT_TARGET",
    "Client",
    "document",
    "error_info",
    "filter_message",
    "retrieve_request",
]
