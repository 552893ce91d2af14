"""Builds the client's requests and reads the errors that come back."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING

import grpc.aio
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from headrace.v1 import common_pb2 as common
from headrace.v1 import index_pb2 as index
from headrace.v1 import retrieval_pb2 as retrieval
from retrieval.server.convert.metadata import metadata_to_pb

if TYPE_CHECKING:
    from indexers.types import Metadata

MESSAGE_DOCUMENTS = 64
MESSAGE_BYTES = 1024 * 1024


def retrieve_request(
    collection: str,
    query: str,
    *,
    top_k: int | None = None,
    filter: str | common.Filter | None = None,
    options: retrieval.RetrievalOptions | None = None,
    cache_control: retrieval.CacheControl | None = None,
) -> retrieval.RetrieveRequest:
    """Returns the request for a question; what is None is left to the server's settings."""
    return retrieval.RetrieveRequest(
        collection=collection,
        query=query,
        top_k=top_k,
        filter=filter_message(filter),
        options=options,
        cache_control=cache_control,
    )


def document(
    document_id: str, text: str, *, title: str = "", metadata: Metadata | None = None, source_uri: str = ""
) -> index.Document:
    """Returns a document to upsert; a metadata value is a str, int, float, bool, datetime or a tuple of one kind."""
    return index.Document(
        id=document_id, title=title, text=text, metadata=metadata_to_pb(metadata or {}), source_uri=source_uri
    )


def filter_message(filter: str | common.Filter | None) -> common.Filter | None:
    """Returns the filter as a message; text is read as the filter language.

    Raises:
        FilterSyntax: the text does not parse.
    """
    if not isinstance(filter, str):
        return filter
    from indexers.filter_text import parse_filter  # noqa: PLC0415 - loads numpy, which most callers do not need
    from retrieval.server.convert.filters import filter_to_pb  # noqa: PLC0415

    return filter_to_pb(parse_filter(filter))


def error_info(error: grpc.aio.AioRpcError | grpc.Call) -> ErrorInfo | None:
    """Returns the ErrorInfo of an error from our server; None when it comes from elsewhere, such as the channel."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                found = ErrorInfo()
                if detail.Unpack(found):
                    return found
    return None


async def import_messages(
    collection: str, documents: Iterable[index.Document] | AsyncIterable[index.Document]
) -> AsyncIterator[index.ImportDocumentsRequest]:
    """Gives the messages of an import, of bounded size; there is a first one even without documents."""
    message = index.ImportDocumentsRequest(collection=collection)
    size = 0
    async for document in _each(documents):
        if message.documents and (
            len(message.documents) >= MESSAGE_DOCUMENTS or size + document.ByteSize() > MESSAGE_BYTES
        ):
            yield message
            message, size = index.ImportDocumentsRequest(), 0
        message.documents.append(document)
        size += document.ByteSize()
    yield message


async def _each(
    documents: Iterable[index.Document] | AsyncIterable[index.Document],
) -> AsyncIterator[index.Document]:
    if isinstance(documents, AsyncIterable):
        async for document in documents:
            yield document
    else:
        for document in documents:
            yield document
